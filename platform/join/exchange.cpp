#include "platform/join/exchange.hpp"

#include <utility>

#include "platform/join/caller.hpp"
#include "platform/join/meeting_file.hpp"
#include "platform/join/pmi.hpp"
#include "platform/join/pmix.hpp"
#include "platform/join/store.hpp"

namespace unisono::join {

std::unique_ptr<Store> open_launcher(JobEnvironment& environment) {
  // Of a job of one rank nobody needs to know anything.
  const bool needed = environment.size == 0 || (environment.size > 1 && environment.meeting == MeetingPlace::kStore);
  if (needed && environment.launcher == Launcher::kPmi) return open_pmi(environment);
  if (needed && environment.launcher == Launcher::kPmix) return open_pmix(environment);
  return nullptr;
}

std::unique_ptr<Exchange> make_exchange(JobEnvironment& environment, std::unique_ptr<Store> store) {
  switch (environment.meeting) {
    case MeetingPlace::kFile:
      return make_file_exchange(environment);
    case MeetingPlace::kStore:
      return make_store_exchange(environment, std::move(store));
    case MeetingPlace::kCaller:
      return make_caller_exchange(environment, *environment.caller);
    case MeetingPlace::kSocket:
      break;
  }
  return make_hub(environment);
}

}  // namespace unisono::join
