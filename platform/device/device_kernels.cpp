#include <algorithm>

#include "platform/device/bring_up.hpp"
#include "platform/device/device_calls.hpp"
#include "platform/device/lost.hpp"

namespace unisono {

void DeviceCalls::launch_kernel(Work& work) {
  KernelRun& kernel = *work.call->kernel;
  if (device->kernels() && !start_on_device(work, kernel)) return;
  if (!device->kernels()) kernel.begin();
  dequeue(work);
  work.state = Work::State::kRunning;
  do {
    if (++last_number == 0) last_number = 1;
  } while (running.count(last_number) != 0 || kernels.count(last_number) != 0);
  work.number = last_number;
  work.with_device = device->kernels();
  kernels.emplace(work.number, &work);
  if (!device->kernels()) return;
  std::vector<std::uint64_t> addresses;
  for (const KernelRun::Memory& one : kernel.memory()) addresses.push_back(address_in(work.images, one));
  std::vector<KernelRun::Place> places;
  for (const std::uint32_t number : kernel.communicators()) {
    const Group& of = group(number);
    places.push_back({of.position, of.state.rank, of.state.size});
  }
  const auto used = std::chrono::duration_cast<microseconds>(device->now() - work.submitted);
  std::vector<CallDescriptor> calls;
  for (const auto& one : work.prepared) {
    const auto at = [](const std::shared_ptr<Image>& image) { return image ? image->address : 0; };
    calls.push_back(
        described(*one, {address_in(work.images, one->region(Region::kSrc)),
                         address_in(work.images, one->region(Region::kDst)), at(one->scratch), at(one->params)}));
    calls.back().deadline_us = deadline_of(one->timeout);
  }
  device->start_kernel(work.number, kernel.packed(addresses, places, calls, deadline_of(work.timeout - used)));
}

bool DeviceCalls::place_all(std::vector<Binding> wanted, std::vector<std::shared_ptr<Image>>& images) {
  wanted.erase(std::remove_if(wanted.begin(), wanted.end(), [](const Binding& one) { return one.bytes == 0; }),
               wanted.end());
  std::sort(wanted.begin(), wanted.end(), [](const Binding& a, const Binding& b) { return a.data < b.data; });
  std::vector<Binding> merged;
  for (const Binding& one : wanted) {
    if (merged.empty() || merged.back().data + merged.back().bytes <= one.data) {
      merged.push_back(one);
    } else {
      const auto* const end = std::max(merged.back().data + merged.back().bytes, one.data + one.bytes);
      merged.back().bytes = static_cast<std::uint64_t>(end - merged.back().data);
    }
  }
  for (const Binding& one : merged) {
    std::shared_ptr<Image> image;
    if (!place(one, image)) return false;
    images.push_back(std::move(image));
  }
  return true;
}

void DeviceCalls::admit_prepared(const KernelRun& kernel, std::vector<std::unique_ptr<Work>>& prepared) {
  for (const CallRequest* const request : kernel.calls()) {
    check_request(*request);
    prepared.push_back(admitted(*request, group(request->communicator)));
    if (!prepared.back()->hooks) continue;
    throw Error(ErrorCode::kUnsupported,
                formatted("{}, which was prepared for kernel {}: the host has work to do before and after it, which "
                          "no kernel can ask for; leave out compression, factors, datatypes and operators of its own",
                          name_of(request->call.collective), kernel.name()));
  }
}

bool DeviceCalls::place_prepared(std::vector<std::unique_ptr<Work>>& prepared) {
  for (const auto& one : prepared) {
    const Binding params = one->region(Region::kParams);
    if (!place({nullptr, one->region(Region::kScratch).bytes}, one->scratch) || !place(params, one->params)) {
      return false;
    }
    if (one->params) store(one->params->address, params);
    if (one->call->call.collective != Collective::kProgram) continue;
    std::shared_ptr<Image> rest;
    if (!place({nullptr, bytes_to_load(*one)}, rest)) return false;
    one->program_slot = slot_of(*one, std::move(rest));
    if (!one->program_slot) return false;
  }
  return true;
}

void DeviceCalls::release_programs(std::vector<std::unique_ptr<Work>>& prepared) {
  for (const auto& one : prepared) {
    if (one->program_slot) programs.leave(*one->program_slot);
    one->program_slot.reset();
  }
}

bool DeviceCalls::start_on_device(Work& work, const KernelRun& kernel) {
  for (const std::uint32_t number : kernel.communicators()) {
    if (groups.count(number) != 0) continue;
    fail(work, ErrorCode::kFreedCommunicator, formatted("communicator {} was freed", number));
    return false;
  }
  std::vector<std::unique_ptr<Work>> prepared;
  try {
    admit_prepared(kernel, prepared);
  } catch (const Error& error) {
    fail(work, error.code(), error.what());
    return false;
  }
  std::vector<Binding> wanted;
  for (const KernelRun::Memory& one : kernel.memory()) wanted.push_back({one.data, one.bytes});
  for (const auto& one : prepared) {
    wanted.push_back(one->region(Region::kSrc));
    wanted.push_back(one->region(Region::kDst));
  }
  std::uint64_t bytes = 0;
  for (const Binding& one : wanted) {
    bytes += one.bytes;
    bool waits_for_host = false;
    if (image_in_flight(one, waits_for_host) || waits_for_host) return false;
  }
  std::vector<std::shared_ptr<Image>> images;
  if (!place_all(wanted, images) || !place_prepared(prepared)) {
    release_programs(prepared);
    if (!running.empty() || !kernels.empty()) return false;
    fail(work, ErrorCode::kOutOfMemory,
         formatted("its {} bytes find no room in the device: {} bytes are free, {} in one piece", bytes,
                   memory.free_bytes(), memory.largest()));
    return false;
  }
  push_windows();
  for (const auto& image : images) store(image->address, image->host);
  work.images = std::move(images);
  work.prepared = std::move(prepared);
  return true;
}

bool DeviceCalls::look_for_kernels() {
  if (kernels.empty()) return false;
  bool any = false;
  if (!device->kernels()) {
    for (auto at = kernels.begin(); at != kernels.end();) {
      Work& work = *at->second;
      ErrorCode code = ErrorCode::kOk;
      std::string sentence;
      const bool given_up = work.state == Work::State::kEnded;
      if (!given_up && !work.call->kernel->ended(code, sentence)) {
        ++at;
        continue;
      }
      at = kernels.erase(at);
      any = true;
      if (!given_up) end(work, code, code == ErrorCode::kOk ? std::string() : told(work, sentence));
    }
    return any;
  }
  use([&] {
    for (const Device::EndedKernel& ended : device->ended_kernels()) {
      const auto found = kernels.find(ended.number);
      if (found == kernels.end()) lost(formatted("it tells of kernel {}, which it was not given", ended.number));
      Work& work = *found->second;
      kernels.erase(found);
      any = true;
      work.with_device = false;
      if (work.state == Work::State::kEnded) {
        settle(work);
        continue;
      }
      for (const auto& [number, of] : groups) pull_window(*of);
      for (const KernelRun::Memory& one : work.call->kernel->memory()) {
        if (one.writes && one.bytes != 0) device->load(address_in(work.images, one), {one.data, one.bytes});
      }
      for (const auto& one : work.prepared) {
        const Binding dst = one->region(Region::kDst);
        const bool root_of_bcast = one->call->call.collective == Collective::kBcast && reads_dst(one->call->call);
        if (dst.bytes != 0 && !root_of_bcast) {
          device->load(address_in(work.images, dst), {dst.data, dst.bytes});
        }
      }
      end(work, ended.code, ended.code == ErrorCode::kOk ? std::string() : told(work, ended.sentence));
    }
  });
  return any;
}

}  // namespace unisono
