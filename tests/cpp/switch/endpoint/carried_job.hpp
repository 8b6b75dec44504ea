// A job of threads on the loop network, each a host of its own, whose calls switches carry.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "network/loop/loop_job.hpp"
#include "switch/endpoint/aggregation.hpp"
#include "tests/cpp/switch/service/members.hpp"

namespace unisono::slots {

/// What a rank has, in its own thread.
struct Rank {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  NativeEngine& engine;
  Aggregation& aggregation;

  CallRequest request(Collective collective, Datatype dtype, std::uint64_t count) const {
    CallRequest made;
    made.call.collective = collective;
    made.call.dtype = dtype;
    made.call.count = count;
    return made;
  }
  template <class Element>
  static Binding binding(std::vector<Element>& vector) {
    return {reinterpret_cast<std::byte*>(vector.data()), vector.size() * sizeof(Element)};
  }
  /// A sum over all ranks of `vector`, in its place.
  template <class Element>
  CallRequest sum_in_place(Datatype dtype, std::vector<Element>& vector) const {
    CallRequest made = request(Collective::kAllreduce, dtype, vector.size());
    made.call.func = Func::kSum;
    made.call.in_place = true;
    made.dst = binding(vector);
    return made;
  }
  bool carried() const { return !aggregation.carrier_of(0).empty(); }
};

/// Runs `work` on each rank of a job; what one of them throws is its sentence, by rank, else empty.
inline std::vector<std::string> run_carried(std::uint32_t ranks, const AggregationSettings& settings,
                                            const std::function<void(Rank&)>& work,
                                            std::chrono::milliseconds timeout = std::chrono::seconds(30),
                                            const std::shared_ptr<const std::vector<Rule>>& rules = nullptr) {
  const std::shared_ptr<loop::Job> job = loop::Job::make(ranks);
  std::vector<std::string> errors(ranks);
  std::vector<std::thread> threads;
  EngineSettings engine_settings;
  engine_settings.timeout = timeout;
  engine_settings.aggregates = true;
  engine_settings.rules = rules;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const std::unique_ptr<Poe> poe = job->endpoint(rank);
        NativeEngine engine(*poe, engine_settings);
        std::vector<std::uint32_t> all(ranks);
        std::iota(all.begin(), all.end(), 0U);
        engine.create_communicator(0, 0, all, NativeEngine::capabilities_of(engine_settings));
        const auto aggregation = Aggregation::make(engine, *poe, [&] { return settings; });
        aggregation->arrange_for(0, 0, all);
        Rank own{rank, ranks, engine, *aggregation};
        work(own);
      } catch (const Error& error) {
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline AggregationSettings settings_for(std::vector<std::string> addresses) {
  AggregationSettings settings;
  settings.addresses = std::move(addresses);
  settings.secret = kSecret;
  settings.patience = std::chrono::milliseconds(400);
  settings.up_to_bytes = 1U << 24U;
  return settings;
}

}  // namespace unisono::slots
