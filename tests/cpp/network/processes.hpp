// Runs code in processes of its own, with a deadline.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

namespace unisono::test {

/// Throws if `condition` is false: for use where a failed expectation would be lost with its process.
inline void require(bool condition, const std::string& text) {
  if (!condition) throw std::runtime_error("not so: " + text);
}

/// A child of fork that runs `body` and exits with 0, or prints what it throws and exits with 1.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(fork()) {
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ > 0) return;
    int status = 1;
    try {
      body();
      status = 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "process %d: %s\n", getpid(), error.what());
    }
    _exit(status);
  }
  ~Child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Child(Child&& other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }

  /// Exit status, or minus the signal that ended it; kills it, and gives -SIGKILL, after `patience`.
  int wait(std::chrono::milliseconds patience = std::chrono::seconds(60)) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      }
      if (std::chrono::steady_clock::now() > deadline) kill(pid_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

 private:
  pid_t pid_;
};

}  // namespace unisono::test
