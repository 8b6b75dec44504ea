#include "kernels/fibre.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace unisono::kernels {
namespace {

TEST(Fibre, GoesOnWhereItSuspended) {
  std::vector<int> order;
  Fibre* self = nullptr;
  Fibre fibre([&] {
    order.push_back(1);
    self->suspend();
    order.push_back(3);
  });
  self = &fibre;
  fibre.resume();
  order.push_back(2);
  EXPECT_FALSE(fibre.ended());
  fibre.resume();
  order.push_back(4);
  EXPECT_TRUE(fibre.ended());
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
}

TEST(Fibre, CatchesItsOwnExceptionsEvenIfAnotherRunsMeanwhile) {
  std::vector<std::unique_ptr<Fibre>> fibres;
  std::vector<std::string> caught;
  for (int i = 0; i < 3; ++i) {
    fibres.push_back(std::make_unique<Fibre>([&, i] {
      try {
        throw std::runtime_error(std::to_string(i));
      } catch (const std::exception&) {
        fibres[static_cast<std::size_t>(i)]->suspend();  // while it is being handled
        try {
          throw;
        } catch (const std::exception& error) {
          caught.emplace_back(error.what());
        }
      }
    }));
  }
  for (const auto& fibre : fibres) fibre->resume();
  for (const auto& fibre : fibres) fibre->resume();
  EXPECT_EQ(caught, (std::vector<std::string>{"0", "1", "2"}));
}

TEST(Fibre, GoesOnInAnotherThread) {
  Fibre* self = nullptr;
  std::vector<std::thread::id> ids;
  Fibre fibre([&] {
    ids.push_back(std::this_thread::get_id());
    self->suspend();
    ids.push_back(std::this_thread::get_id());
  });
  self = &fibre;
  fibre.resume();
  std::thread([&] { fibre.resume(); }).join();
  ASSERT_EQ(ids.size(), 2U);
  EXPECT_TRUE(fibre.ended());
}

TEST(Fibre, HasAStackOfItsOwnForLargeArrays) {
  int sum = 0;
  Fibre fibre([&] {
    volatile char memory[4 << 20];
    for (std::size_t i = 0; i < sizeof memory; i += 4096) memory[i] = 1;
    for (std::size_t i = 0; i < sizeof memory; i += 4096) sum += memory[i];
  });
  fibre.resume();
  EXPECT_EQ(sum, 1024);
}

}  // namespace
}  // namespace unisono::kernels
