// What members bring to the agreement of their job, as it came over the network; then a communicator on what was
// agreed.
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "driver/objects.hpp"
#include "platform/join/job.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace unisono;  // NOLINT(google-build-using-namespace)
using fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  std::vector<std::vector<std::byte>> all_capabilities;
  all_capabilities.push_back(driver::pack_capabilities(NativeEngine::capabilities_of({})));
  while (!input.empty() && all_capabilities.size() < 8) {
    const std::uint8_t kind = input.take<std::uint8_t>();
    // Mostly of the length that is looked at; the difference to sound ones, or all bytes.
    std::vector<std::byte> capabilities = all_capabilities.front();
    if (kind % 4 == 0) capabilities.resize(kind);
    const auto bytes = input.take_bytes(capabilities.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      capabilities[i] = kind % 2 == 0 ? std::byte{bytes[i]} : capabilities[i] ^ std::byte{bytes[i]};
    }
    all_capabilities.push_back(std::move(capabilities));
  }
  claim(driver::nodes_of(all_capabilities).size() == all_capabilities.size(), "every member has a node");
  Agreement agreed;
  try {
    agreed = driver::agree_on(all_capabilities);
  } catch (const Error& error) {
    claim(error.code() == ErrorCode::kBootstrap || error.code() == ErrorCode::kUnsupported,
          "offers are refused as such");
    return 0;
  }
  claim(agreed.segment_bytes != 0 && agreed.rx_buffer_count != 0, "messages have a length, and a place to stand");
  // One member of that job, which sends to itself what the agreement lets pass.
  ThreadJob job(1);
  const std::unique_ptr<Poe> network = job.endpoint(0);
  EngineSettings settings;
  settings.timeout = std::chrono::milliseconds(50);
  try {
    NativeEngine engine(*network, settings);
    const std::uint32_t self = 0;
    engine.create_communicator(0, 0, {&self, 1}, agreed);
    std::int32_t in[40] = {1, 2, 3};
    std::int32_t out[40] = {};
    CallRequest call;
    call.call.collective = Collective::kAllreduce;
    call.call.func = Func::kSum;
    call.call.dtype = Datatype::kInt32;
    call.call.count = 40;
    call.src = {reinterpret_cast<std::byte*>(in), sizeof in};
    call.dst = {reinterpret_cast<std::byte*>(out), sizeof out};
    engine.run(call);
    claim(std::equal(std::begin(in), std::end(in), std::begin(out)), "one rank's sum is its own part");
  } catch (const Error&) {
    // Refused, for instance for what the members' engines lack.
  }
  return 0;
}
