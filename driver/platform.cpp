#include "driver/platform.hpp"

#include <sys/stat.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "core/quoted.hpp"
#include "cost/in_force.hpp"
#include "engine/copy_class.hpp"
#include "network/ofi/make.hpp"
#include "network/tcp/handshake.hpp"
#include "platform/device/device_engine.hpp"
#include "platform/device/functional.hpp"
#include "platform/device/simulated.hpp"
#include "switch/endpoint/settings.hpp"

namespace unisono::driver {

namespace {

/// How much later than its deadline a call of a device may end. The native engine behind the functional device gives
/// peers 100 ms more to say whether they have entered; a node of a cluster answers at once, and its time is dear.
constexpr std::chrono::microseconds kFunctionalMargin{500'000};
constexpr std::chrono::microseconds kSimulatedMargin{1'000};
/// Deadline of a call on a simulated cluster, of its time, in which a second takes hours.
constexpr std::chrono::microseconds kSimulatedTimeout{50'000};

[[noreturn]] void refuse(const char* name, const char* value, const std::string& allowed) {
  throw Error(ErrorCode::kBootstrap, std::string("environment variable ") + name + " is " +
                                         (value == nullptr ? "not set" : in_quotes(value)) + ", but should be " +
                                         allowed);
}

int descriptor_of_device() {
  const char* const name = "UNISONO_DEVICE_FD";
  const char* const value = std::getenv(name);
  int number = -1;
  const std::string_view text = value == nullptr ? "" : value;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size() || number < 0) {
    refuse(name, value,
           "the number of the file descriptor that leads to this rank's node; start the program with `unisono run "
           "--platform rtl`");
  }
  struct stat what {};
  if (fstat(number, &what) != 0 || !S_ISSOCK(what.st_mode)) {
    refuse(name, value,
           "a socket that this process inherited and has not closed; a process joins with its device once, and its "
           "children have none");
  }
  return number;
}

std::chrono::milliseconds patience_with_device() {
  const char* const name = "UNISONO_DEVICE_TIMEOUT_S";
  const char* const value = std::getenv(name);
  if (value == nullptr) return SimulatedDevice::kPatience;
  double seconds = 0;
  const std::string_view text = value;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  constexpr double kMost = 7 * 24 * 3600.0;
  if (fault != std::errc() || end != text.data() + text.size() || !(seconds >= 0.001) || seconds > kMost) {
    refuse(name, value, "a number of seconds from 0.001 to " + std::to_string(static_cast<long>(kMost)));
  }
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

std::vector<std::uint32_t> firmware_image() {
  const char* const name = "UNISONO_FIRMWARE";
  const char* const value = std::getenv(name);
  if (value == nullptr) {
    refuse(name, value,
           "the image of the microcontroller (unisono.bin): `python firmware/build.py --image` makes it, `unisono run "
           "--platform rtl` finds it");
  }
  std::vector<char> bytes;
  try {
    std::ifstream file(value, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  } catch (const std::ios_base::failure&) {
    bytes.clear();  // a folder, say
  }
  if (bytes.empty() || bytes.size() % sizeof(std::uint32_t) != 0) {
    refuse(name, value, "a readable image of whole words (unisono.bin of `python firmware/build.py --image`)");
  }
  std::vector<std::uint32_t> words(bytes.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

std::shared_ptr<Context> functional_context(std::unique_ptr<Poe> poe, const EngineSettings& settings,
                                            std::span<const std::vector<std::byte>> all_capabilities) {
  DeviceOptions options;
  options.settings = settings;
  options.margin = kFunctionalMargin;
  options.nodes = nodes_of(all_capabilities);
  options.job = poe.get();  // of which the engine behind the registers writes this endpoint's records
  auto engine = std::make_unique<DeviceEngine>(std::make_unique<FunctionalDevice>(*poe), std::move(options));
  return std::make_shared<Context>(std::move(poe), std::move(engine), agree_on(all_capabilities));
}

std::vector<std::byte> functional_capabilities(const EngineSettings& settings, std::uint32_t rank) {
  const std::uint64_t capability = encode(FunctionalDevice::usual_capability())[0];
  return pack_capabilities(DeviceEngine::capabilities_of(capability, settings), Platform::kFunctional, rank);
}

std::shared_ptr<Context> simulated_context(const JobEnvironment& environment, const EngineSettings& settings) {
  DeviceOptions options;
  options.settings = settings;
  options.margin = kSimulatedMargin;
  if (std::getenv("UNISONO_FIRMWARE") != nullptr) options.firmware = firmware_image();
  auto device = std::make_unique<SimulatedDevice>(descriptor_of_device(), patience_with_device());
  const bool in_place = (device->greeting().features & device::kHasFirmware) != 0;
  if (!in_place && options.firmware.empty()) options.firmware = firmware_image();
  const std::uint32_t node = device->node();
  // What the device is can only be asked while all hosts wait for it, and here they wait for each other: these
  // capabilities says who is who, and the capability follows when all have come.
  JoinedJob job =
      join_job(environment, pack_capabilities(DeviceEngine::capabilities_of(0, settings), Platform::kRtl, node));
  agree_on(job.all_capabilities);
  options.nodes = nodes_of(job.all_capabilities);
  options.hosts = job.poe.get();
  options.job = job.poe.get();
  options.records = true;
  auto engine = std::make_unique<DeviceEngine>(std::move(device), std::move(options));
  DeviceEngine& own = *engine;
  const auto all_capabilities =
      own.exchange(pack_capabilities(own.capabilities(), Platform::kRtl, node), environment.timeout);
  auto context = std::make_shared<Context>(std::move(job.poe), std::move(engine), agree_on(all_capabilities));
  own.start_together(environment.timeout);
  return context;
}

/// What the tuning file says of networks, where the environment does not.
void add_file(JobEnvironment& environment) {
  static_assert(cost::kMostConnections == tcp::kMostConnections && cost::kLeastRegistered == ofi::kRegisterFrom);
  const auto file = cost::file_in_force().file;
  if (!file || !file->network) return;
  if (!environment.tcp_connections) environment.tcp_connections = file->network->connections;
  if (!environment.ofi_register_from) environment.ofi_register_from = file->network->register_from;
}

}  // namespace

Platform platform_of_process() {
  const char* const value = std::getenv("UNISONO_PLATFORM");
  if (value == nullptr || *value == '\0') return Platform::kNative;
  for (const Platform platform : {Platform::kNative, Platform::kFunctional, Platform::kRtl}) {
    if (std::string_view(name_of(platform)) == value) return platform;
  }
  refuse("UNISONO_PLATFORM", value,
         "native (this library's own engine), functional (the registers of a device, the native engine behind them) or "
         "rtl (a node of a simulated cluster)");
}

EngineSettings default_settings(Platform platform) {
  EngineSettings settings;
  if (platform == Platform::kNative) {
    settings.aggregates = slots::aggregation_asked();
    return settings;
  }
  settings.eager_limit = 4096;
  settings.segment_bytes = 4096;
  settings.rx_buffer_count = 16;
  if (platform == Platform::kRtl) settings.timeout = kSimulatedTimeout;
  return settings;
}

std::shared_ptr<Context> join_as_process(Platform platform, const EngineSettings& settings,
                                         const JobEnvironment& given) {
  JobEnvironment environment = given;
  if (environment.size != 1) add_file(environment);
  if (environment.lines) write_stdout_by_lines();
  if (platform == Platform::kRtl) return simulated_context(environment, settings);
  const bool native = platform == Platform::kNative;
  FindCopyFrom find;
  if (native) find = [] { return cclo::copy_class().from; };
  JoinedJob job = join_job(environment,
                           native ? pack_capabilities(NativeEngine::capabilities_of(settings))
                                  : functional_capabilities(settings, environment.rank),
                           find);
  if (!native) return functional_context(std::move(job.poe), settings, job.all_capabilities);
  return std::make_shared<Context>(std::move(job.poe), settings, job.all_capabilities);
}

std::shared_ptr<Context> join_as_thread(Platform platform, const EngineSettings& settings, SharedJob& job,
                                        std::uint32_t rank) {
  if (platform == Platform::kRtl) {
    throw Error(ErrorCode::kUnsupported,
                "a thread job on platform rtl: each rank has a node of its own, so ranks must be processes; start them "
                "with `unisono run --platform rtl`, or leave UNISONO_PLATFORM unset");
  }
  constexpr std::chrono::seconds kPatience{60};
  std::vector<std::vector<std::byte>> all_capabilities;
  const bool native = platform == Platform::kNative;
  std::unique_ptr<Poe> poe = job.join(
      rank,
      native ? pack_capabilities(NativeEngine::capabilities_of(settings)) : functional_capabilities(settings, rank),
      kPatience, all_capabilities);
  if (!native) return functional_context(std::move(poe), settings, all_capabilities);
  return std::make_shared<Context>(std::move(poe), settings, all_capabilities);
}

}  // namespace unisono::driver
