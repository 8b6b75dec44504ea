#include <algorithm>

#include "core/facts.hpp"
#include "core/footprint.hpp"
#include "core/reserved_tags.hpp"
#include "engine/admit.hpp"
#include "engine/stream_ports.hpp"
#include "platform/device/bring_up.hpp"
#include "platform/device/device_calls.hpp"
#include "platform/device/lost.hpp"
#include "platform/device/registers.hpp"

namespace unisono {

namespace {

/// Calls of a communicator that a switch in hardware tells apart: its UnitRuns (rtl/switch/unisono_switch_pkg.sv).
constexpr std::uint64_t kSwitchRuns = 8;

bool overlap(const Binding& a, const Binding& b) {
  if (a.bytes == 0 || b.bytes == 0) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(a.data);
  const auto second = reinterpret_cast<std::uintptr_t>(b.data);
  return first < second + b.bytes && second < first + a.bytes;
}

}  // namespace

bool reads_dst(const Call& call) {
  const CollectiveFacts facts = facts_of(call.collective);
  const Uses uses = uses_of(call);
  // Between blocks by counts there may be gaps, a message may be shorter than its buffer, and of programs nothing is
  // known.
  const bool writes_all = uses.writes == uses.dst && !facts.vectors && !facts.point_to_point && facts.data;
  return uses.reads != Extent::kNothing || !writes_all;
}

void DeviceCalls::check_request(const CallRequest& request) const {
  if (request.reserved_tag && !is_message_tag(static_cast<std::uint32_t>(request.tag))) {
    throw Error(ErrorCode::kUnsupported,
                formatted("create_group on communicator {}: its members would exchange messages with tags of the "
                          "library, which devices do not carry; use `split` or `subset`, which all ranks of the "
                          "communicator call, or platform native",
                          request.communicator));
  }
  if (const std::string why = cclo::wildcard_in_hardware(request); !why.empty()) {
    throw Error(ErrorCode::kUnsupported, formatted("recv on communicator {}: {}", request.communicator, why));
  }
  if (request.src_port >= 0)
    check_stream(static_cast<std::uint32_t>(request.src_port), name_of(request.call.collective));
  if (request.dst_port >= 0)
    check_stream(static_cast<std::uint32_t>(request.dst_port), name_of(request.call.collective));
}

std::unique_ptr<DeviceCalls::Work> DeviceCalls::admitted(const CallRequest& request, Group& on) {
  auto made = std::make_unique<Work>();
  made->call = std::make_unique<cclo::CallState>();
  made->call->communicator = &on.state;
  made->group = &on;
  cclo::admit(request, *made->call);
  if (made->call->streams) {
    // The device has its own ports, and knows whether its program can go to them.
    made->src_port = request.src_port;
    made->dst_port = request.dst_port;
    for (const cclo::CallStreams::Bound& bound : made->call->streams->bounds) {
      if (bound.staged && !device->copies_streams()) refuse_stream(*made->call, bound);
      made->call->regions[static_cast<std::size_t>(bound.region)] = {};
    }
    made->call->streams.reset();
  }
  check_size(*made);
  made->automatic = request.algorithm == -1;
  made->hooks = request.hooks;
  made->timeout = request.timeout.count() > 0 ? request.timeout : on.state.timeout;
  return made;
}

DeviceCalls::Work& DeviceCalls::submit(const CallRequest& request) {
  check_alive();
  check_request(request);
  listen();
  Group& on = group(request.communicator);
  if (on.state.revoked) {
    throw Error(ErrorCode::kRevoked, on.state.title() + " was revoked: " + on.state.reason);
  }
  for (const CallId id : request.wait_for) {
    if (id == 0 || id > last_id) {
      throw Error(ErrorCode::kInvalidArgument,
                  formatted("it is to follow call {}, but no call of this endpoint has that number", id));
    }
  }
  if (request.timeout.count() < 0) {
    throw Error(ErrorCode::kInvalidArgument,
                formatted("a timeout of {} us was given; 0 is the communicator's, else it is positive",
                          request.timeout.count()));
  }
  std::unique_ptr<Work> made = admitted(request, on);
  made->id = ++last_id;
  ++on.calls;
  made->call->kernel = request.kernel;
  made->wait_for.assign(request.wait_for.begin(), request.wait_for.end());
  made->submitted = device->now();
  made->began = Clock::now();
  Work& work = *made;
  works.emplace(work.id, std::move(made));
  queue.push_back(&work);
  if (work.collective()) {
    work.call->sequence = on.state.order->enter(work.call->signature).sequence;
    on.last = {work.call->algorithm, work.automatic};
  }
  DeviceFlight::begin(*work.call);
  return work;
}

void DeviceCalls::refuse_stream(const cclo::CallState& call, const cclo::CallStreams::Bound& bound) {
  const char* const collective = name_of(call.call.collective);
  throw Error(
      ErrorCode::kUnsupported,
      formatted("{} on {}: stream port {} is its {}, and the algorithm {} does not go through that once, in "
                "order, as a stream on a device must. Name another one on all ranks: `unisono explain {} "
                "--streams` says which",
                collective, call.communicator->title(), bound.port, bound.region == Region::kSrc ? "src" : "dst",
                call.algorithm == nullptr ? "of the call" : call.algorithm->name, collective));
}

void DeviceCalls::check_stream(std::uint32_t port, const std::string& operation) const {
  cclo::check_port(port, operation);
  const std::uint32_t there = device->streams();
  if (port < there) return;
  throw Error(ErrorCode::kUnsupported,
              there == 0 ? operation +
                               ": the streams of this device are those of kernels beside its engine; a host does "
                               "not reach them"
                         : formatted("{}: stream port {} was given; this device has ports 0 to {}", operation, port,
                                     there - 1));
}

void DeviceCalls::check_size(const Work& work) const {
  std::uint64_t bytes = 0;
  if (work.call->call.collective == Collective::kProgram) {
    LoadedPrograms::check_size(*work.call->program, work.group->state);
    bytes = kMoveBytes * LoadedPrograms::rest_of(*work.call->program).size();
  }
  for (const Region region : {Region::kSrc, Region::kDst, Region::kScratch, Region::kParams}) {
    bytes += work.region(region).bytes;
  }
  if (bytes <= device->memory_bytes()) return;
  throw Error(ErrorCode::kOutOfMemory,
              formatted("{} on communicator {}: it takes {} bytes of device memory; the device has {}",
                        name_of(work.call->call.collective), work.group->state.number, bytes, device->memory_bytes()));
}

std::optional<DeviceCalls::Order> DeviceCalls::order_of(const Work& work) {
  if (work.collective()) return Order{work.group, true};
  if (work.point_to_point()) return Order{work.group, false};
  return std::nullopt;
}

void DeviceCalls::launch_all() {
  std::set<Order> held;
  for (auto next = queue.begin(); next != queue.end();) {
    if (running.size() >= DeviceLimits::kCalls || !lost_because.empty()) return;
    Work& work = **next;
    ++next;  // `launch` takes it out of the queue, and nothing behind it unless the communicator fails
    const auto order = order_of(work);
    if (order && held.count(*order) != 0) continue;
    const std::uint64_t before = removals;
    use([&] { launch(work); });
    if (work.state == Work::State::kQueued && order) held.insert(*order);
    // A failure may have ended calls further behind.
    if (removals > before + 1) next = queue.begin();
  }
}

void DeviceCalls::dequeue(Work& work) {
  queue.remove(&work);
  ++removals;
}

bool DeviceCalls::is_too_early(const Work& work) const {
  if (work.group->state.tree == nullptr) return false;
  return std::any_of(running.begin(), running.end(), [&](const auto& one) {
    return one.second->group == work.group && work.group->launches - one.second->launch >= kSwitchRuns;
  });
}

void DeviceCalls::launch(Work& work) {
  if (is_too_early(work)) return;
  std::array<std::uint32_t, DeviceLimits::kWaitFor> waits{};
  std::size_t count = 0;
  for (const CallId id : work.wait_for) {
    const Work* before = find(id);
    if (before == nullptr) continue;
    if (before->state == Work::State::kEnded) {
      if (before->result.code == ErrorCode::kOk) continue;
      fail(work, before->result.code, formatted("it follows call {}, which failed: {}", id, before->result.message));
      return;
    }
    // What the host does around a call it does with results on the host.
    if (before->state == Work::State::kQueued || count == waits.size() || work.hooks || before->hooks) return;
    // The device's engine knows nothing of kernels.
    if (work.call->kernel || before->call->kernel) return;
    waits[count++] = before->number;
  }
  if (work.call->kernel) return launch_kernel(work);

  const Binding src = work.region(Region::kSrc);
  const Binding dst = work.region(Region::kDst);
  const bool fill_dst = reads_dst(work.call->call);
  bool waits_for_host = false;
  std::shared_ptr<Image> src_image = image_in_flight(src, waits_for_host);
  std::shared_ptr<Image> dst_image = fill_dst ? image_in_flight(dst, waits_for_host) : nullptr;
  if (waits_for_host) return;
  const bool store_src = src.bytes != 0 && !src_image;
  const bool store_dst = fill_dst && dst.bytes != 0 && !dst_image;
  const Binding scratch{nullptr, work.region(Region::kScratch).bytes};
  const Binding params = work.region(Region::kParams);
  std::shared_ptr<Image> scratch_image, params_image;
  const Binding rest{nullptr, bytes_to_load(work)};
  std::shared_ptr<Image> rest_image;
  const auto find_room = [&] {
    return place(src, src_image) && place(dst, dst_image) && place(scratch, scratch_image) &&
           place(params, params_image) && place(rest, rest_image);
  };
  if (!find_room()) {
    if (!running.empty()) return;
    programs.forget(*work.call);
  }
  if (!find_room()) {
    fail(work, ErrorCode::kOutOfMemory,
         formatted("its {} bytes find no room in the device: {} bytes are free, {} in one piece",
                   src.bytes + dst.bytes + scratch.bytes + params.bytes + rest.bytes, memory.free_bytes(),
                   memory.largest()));
    return;
  }
  if (work.call->call.collective == Collective::kProgram) {
    work.program_slot = slot_of(work, std::move(rest_image));
    if (!work.program_slot) return;
  }
  push_windows();
  if (work.hooks) work.hooks->before();
  if (store_src) store(src_image->address, src);
  if (store_dst) store(dst_image->address, dst);
  if (params_image) store(params_image->address, params);

  const auto at = [](const std::shared_ptr<Image>& image, const Binding& host) {
    return image ? image->address + static_cast<std::uint64_t>(host.data - image->host.data) : 0;
  };
  CallDescriptor descriptor =
      described(work, {at(src_image, src), at(dst_image, dst), at(scratch_image, scratch), at(params_image, params)});
  const auto used = std::chrono::duration_cast<microseconds>(device->now() - work.submitted);
  descriptor.deadline_us = deadline_of(work.timeout - used);
  do {
    if (++last_number == 0) last_number = 1;
  } while (running.count(last_number) != 0);
  descriptor.call_id = last_number;
  descriptor.wait_for0 = waits[0];
  descriptor.wait_for1 = waits[1];
  ring(descriptor);

  dequeue(work);
  work.number = last_number;
  work.state = Work::State::kRunning;
  work.with_device = true;
  work.src = std::move(src_image);
  work.dst = std::move(dst_image);
  work.scratch = std::move(scratch_image);
  work.params = std::move(params_image);
  ++work.group->on_device;
  work.launch = work.group->launches++;
  running.emplace(work.number, &work);
}

CallDescriptor DeviceCalls::described(const Work& work, const Addresses& at) const {
  const Call& call = work.call->call;
  CallDescriptor descriptor;
  descriptor.collective = call.collective;
  // The algorithm is chosen here, for it decides how much scratch there must be. A nop's number has another meaning.
  if (call.collective != Collective::kNop && work.call->algorithm != nullptr) {
    descriptor.algorithm = static_cast<std::uint8_t>(work.call->algorithm - algorithms().data() + 1);
  }
  descriptor.func = call.func;
  descriptor.dtype = call.dtype;
  descriptor.in_place = call.in_place;
  descriptor.communicator = work.group->position;
  descriptor.radix = call.radix;
  descriptor.root = call.root;
  descriptor.tag = work.point_to_point() ? work.call->tag : 0;
  descriptor.count = call.count;
  const auto bind = [](std::uint64_t from, const Binding& host, std::uint64_t& address, std::uint64_t& bytes) {
    if (from == 0) return;
    address = from;
    bytes = host.bytes;
  };
  bind(at.src, work.region(Region::kSrc), descriptor.src_address, descriptor.src_bytes);
  bind(at.dst, work.region(Region::kDst), descriptor.dst_address, descriptor.dst_bytes);
  const auto stream = [](std::int8_t port, bool& is_stream, std::uint64_t& address) {
    if (port < 0) return;
    is_stream = true;
    address = static_cast<std::uint8_t>(port);
  };
  stream(work.src_port, descriptor.src_stream, descriptor.src_address);
  // The port of a send is the peer's; its engine knows it by the tag.
  if (call.collective != Collective::kSend) stream(work.dst_port, descriptor.dst_stream, descriptor.dst_address);
  bind(at.scratch, work.region(Region::kScratch), descriptor.scratch_address, descriptor.scratch_bytes);
  bind(at.params, work.region(Region::kParams), descriptor.params_address, descriptor.params_bytes);
  descriptor.program = work.program_slot.value_or(0);
  descriptor.window_offset = work.call->window_offset;
  return descriptor;
}

std::uint64_t DeviceCalls::bytes_to_load(const Work& work) const {
  if (work.call->call.collective != Collective::kProgram || programs.holds(*work.call)) return 0;
  return kMoveBytes * LoadedPrograms::rest_of(*work.call->program).size();
}

std::optional<std::uint32_t> DeviceCalls::slot_of(const Work& work, std::shared_ptr<Image> rest) {
  const std::optional<std::uint32_t> taken = programs.take(*work.call, std::move(rest));
  if (!taken && running.empty() && kernels.empty()) lost("it has no place for a program, and no call under way");
  return taken;
}

std::shared_ptr<DeviceImage> DeviceCalls::image_in_flight(const Binding& wanted, bool& hold) const {
  std::shared_ptr<Image> found;
  for (const auto& [number, work] : running) {
    if (work->state == Work::State::kEnded || !work->dst || work->dst == found) continue;
    if (!overlap(wanted, work->region(Region::kDst))) continue;
    const Binding& host = work->dst->host;
    const bool covers = host.data <= wanted.data && wanted.data + wanted.bytes <= host.data + host.bytes;
    if (found || !covers) {
      hold = true;
      return nullptr;
    }
    found = work->dst;
  }
  return found;
}

bool DeviceCalls::place(const Binding& host, std::shared_ptr<Image>& image) {
  if (image || host.bytes == 0) return true;
  image = Image::of(memory, host);
  return image != nullptr;
}

void DeviceCalls::ring(const CallDescriptor& descriptor) {
  std::array<std::uint32_t, 32> words{};
  const auto encoded = encode(descriptor);
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    words[2 * i] = static_cast<std::uint32_t>(encoded[i]);
    words[2 * i + 1] = static_cast<std::uint32_t>(encoded[i] >> 32U);
  }
  // At most as many calls are out as the device has entries, so it takes the last one soon.
  for (int i = 0; (device->read(exchange::kStatus) & registers::kStatusSlotTaken) != 0; ++i) {
    if (i == kDevicePatience)
      lost("it does not take a call (status " + hexadecimal(device->read(exchange::kStatus)) + ")");
  }
  device->write(exchange::kCallSlot, words);
  device->write(exchange::kDoorbell, 1);
}

}  // namespace unisono
