#include <initializer_list>
#include <utility>

#include "sim/price/parameters.hpp"
#include "sim/price/ways.hpp"

namespace unisono::sim {
namespace {

constexpr std::uint64_t kShort = 64;

using Ranks = std::vector<std::uint32_t>;

/// The moves of one rank, written down.
class Moves {
 public:
  Moves& send(const Ranks& to, std::uint64_t bytes) {
    add(bytes);
    if (bytes != 0) last().op0.kind = OperandKind::kMemory;
    return also_send(to);
  }
  Moves& also_send(const Ranks& to) {
    last().remote.kind = RemoteKind::kMessage;
    name(to, last().remote.mode, last().remote.peer);
    return *this;
  }
  Moves& arrive(const Ranks& from, std::uint64_t bytes) {
    add(bytes);
    last().op1.kind = OperandKind::kArrival;
    name(from, last().arrival.mode, last().arrival.peer);
    return *this;
  }
  Moves& keep() {
    last().local.kind = OperandKind::kMemory;
    return *this;
  }
  Moves& fold() {
    last().op0.kind = OperandKind::kMemory;
    last().func = Func::kSum;
    return *this;
  }
  Moves& sum() {
    last().func = Func::kSum;
    return *this;
  }
  Moves& after() {
    last().dependencies = 1;
    return *this;
  }
  operator Program() const { return program_; }  // NOLINT(google-explicit-constructor): it is one

 private:
  Move& last() { return program_.moves.back(); }
  void add(std::uint64_t bytes) {
    Move move;
    move.kind = MoveKind::kMove;
    move.dtype = Datatype::kFp32;
    move.count = bytes / bytes_of(Datatype::kFp32);
    move.signal = bytes == 0;
    program_.moves.push_back(move);
  }
  void name(const Ranks& ranks, PeerMode& mode, std::uint32_t& peer) {
    mode = ranks.size() == 1 ? PeerMode::kRank : PeerMode::kList;
    peer = ranks.front();
    if (ranks.size() == 1) return;
    peer = static_cast<std::uint32_t>(program_.pool.size());
    program_.pool.push_back(static_cast<std::uint32_t>(ranks.size()));
    program_.pool.insert(program_.pool.end(), ranks.begin(), ranks.end());
  }
  Program program_;
};

/// Messages of a length, on the network of the microbenchmarks.
class Bench {
 public:
  Bench(const EndpointCosts& engine, const EndpointCosts& switches, std::uint64_t mbps)
      : engine_(engine), switches_(switches), config_(network_of(mbps)), ways_(config_) {}

  /// When each rank answers. The last program is the unit's if there is one for it.
  std::vector<double> run(std::vector<Program> programs, bool unit = false) const {
    ModelledCall call;
    call.programs = std::move(programs);
    call.members = static_cast<std::uint32_t>(call.programs.size()) - (unit ? 1 : 0);
    for (std::uint32_t rank = 0; rank < call.members; ++rank) call.addresses.push_back(rank);
    if (unit) call.addresses.push_back(config_.nodes);
    const ModelledTime time = run_model(config_, call, engine_, switches_);
    return {time.answered.begin(), time.answered.end()};
  }
  double way(std::uint64_t bytes) const { return ways_.frame(0, 1, kWord + bytes); }
  double busy(std::uint64_t bytes) const { return ways_.busy(0, 1, kWord + bytes); }
  double to_unit(std::uint64_t bytes) const { return ways_.frame(0, config_.nodes, kWord + bytes); }
  double from_unit(std::uint64_t bytes) const { return ways_.frame(config_.nodes, 1, kWord + bytes); }

 private:
  static constexpr std::uint64_t kWord = 64;

  static NetworkConfig network_of(std::uint64_t mbps) {
    NetworkConfig config;
    config.nodes = 5;
    config.link.mbps = mbps;
    config.policy = Policy::kPause;
    config.aggregation = parse_aggregation("ais@switch0");
    return config;
  }
  const EndpointCosts& engine_;
  const EndpointCosts& switches_;
  NetworkConfig config_;
  Ways ways_;
};

/// What a message takes at two lengths says what it takes at all that fit into a segment.
template <class F>
Overhead line(std::uint64_t eager, F&& cycles) {
  Overhead found;
  found.signal = cycles(std::uint64_t{0});
  const double least = cycles(kShort), most = cycles(eager);
  found.byte = (most - least) / static_cast<double>(eager - kShort);
  found.first = least - found.byte * static_cast<double>(kShort);
  return found;
}

/// Messages one after the other, and what each of them adds at both ends.
std::pair<double, double> gaps(const Bench& bench, std::uint32_t few, std::uint32_t many, std::uint64_t bytes) {
  const auto row = [&](std::uint32_t n) {
    Moves sender, receiver;
    for (std::uint32_t i = 0; i < n; ++i) {
      sender.send({1}, bytes);
      receiver.arrive({0}, bytes).keep();
    }
    return bench.run({sender, receiver});
  };
  const auto less = row(few), more = row(many);
  return {(more[0] - less[0]) / (many - few), (more[1] - less[1]) / (many - few)};
}

void measure_engine(const Bench& bench, std::uint64_t eager, Parameters& found) {
  found.call = bench.run({Moves(), Moves()})[0];
  const auto kept = [](Moves moves, std::uint64_t bytes) { return bytes == 0 ? moves : moves.keep(); };
  const auto ping = [&](std::uint64_t bytes) {
    return bench.run({Moves().send({1}, bytes), kept(Moves().arrive({0}, bytes), bytes)});
  };
  found.send = line(eager, [&](std::uint64_t bytes) { return ping(bytes)[0] - found.call; });
  const auto sent = [&](std::uint64_t bytes) {
    return found.call + found.send.of(static_cast<double>(bytes)) + bench.way(bytes);
  };
  found.receive = line(eager, [&](std::uint64_t bytes) { return ping(bytes)[1] - sent(bytes); });
  const auto received = [&](std::uint64_t bytes) { return found.receive.of(static_cast<double>(bytes)); };
  // From rank 0 by rank 1 to rank 2, past the memory of rank 1 or through it.
  found.forward = line(eager, [&](std::uint64_t bytes) {
    const auto chain = bench.run(
        {Moves().send({1}, bytes), Moves().arrive({0}, bytes).also_send({2}), kept(Moves().arrive({1}, bytes), bytes)});
    return chain[2] - sent(bytes) - bench.way(bytes) - received(bytes);
  });
  found.send_after = line(eager, [&](std::uint64_t bytes) {
    const auto chain =
        bench.run({Moves().send({1}, bytes), kept(Moves().arrive({0}, bytes), bytes).send({2}, bytes).after(),
                   kept(Moves().arrive({1}, bytes), bytes)});
    return chain[2] - sent(bytes) - received(bytes) - bench.way(bytes) - received(bytes);
  });
  found.receive_late = line(eager, [&](std::uint64_t bytes) {
    // Rank 2 sends much more, so what comes from rank 0 is in its buffer by then.
    const std::uint64_t longer = 4 * eager;
    const Program late = Moves().send({1}, longer), early = Moves().send({1}, bytes);
    const auto alone = bench.run({Moves(), Moves().arrive({2}, longer).keep(), late});
    const auto both =
        bench.run({early, kept(Moves().arrive({2}, longer).keep().arrive({0}, bytes).after(), bytes), late});
    return both[1] - alone[1];
  });
  found.fold = line(eager, [&](std::uint64_t bytes) {
    if (bytes == 0) return 0.0;
    const auto folded = bench.run({Moves().send({1}, bytes), Moves().arrive({0}, bytes).fold().keep()});
    return folded[1] - ping(bytes)[1];
  });
  // Two, and four, that one move takes, on a link that is no limit.
  const auto several = [&](const Ranks& from, std::uint64_t bytes) {
    std::vector<Program> programs;
    for (std::size_t i = 0; i < from.size(); ++i) programs.push_back(Moves().send({4}, bytes));
    while (programs.size() < 4) programs.push_back(Moves());
    programs.push_back(kept(Moves().arrive(from, bytes), bytes));
    return bench.run(std::move(programs))[4];
  };
  const auto fan_in = [&](std::uint64_t bytes) { return (several({0, 1, 2, 3}, bytes) - several({0, 1}, bytes)) / 2; };
  found.gap_fan_in = {fan_in(0), fan_in(kShort), 0};
  found.receive_list = line(eager, [&](std::uint64_t bytes) {
    return several({0, 1}, bytes) - sent(bytes) -
           std::max(found.gap_fan_in.of(static_cast<double>(bytes)), bench.busy(bytes));
  });
  const auto list = [&](const Ranks& to, std::uint64_t bytes) {
    std::vector<Program> programs(5, Moves());
    programs[0] = Moves().send(to, bytes);
    for (const std::uint32_t rank : to) programs[rank] = kept(Moves().arrive({0}, bytes), bytes);
    return bench.run(std::move(programs))[0];
  };
  const auto fan_out = [&](std::uint64_t bytes) { return (list({1, 2, 3, 4}, bytes) - list({1, 2}, bytes)) / 2; };
  found.gap_list = {fan_out(0), fan_out(kShort), 0};
  std::tie(found.gap, found.gap_receive_row) = gaps(bench, 1, 9, kShort);
  const auto in_turn = [&](std::uint32_t n) {
    std::vector<Moves> all(5);
    for (std::uint32_t i = 0; i < n; ++i) {
      all[i % 4].send({4}, kShort);
      all[4].arrive({i % 4}, kShort).keep();
    }
    return bench.run({all.begin(), all.end()})[4];
  };
  found.gap_receive = (in_turn(12) - in_turn(4)) / 8;
  found.gap_program = gaps(bench, 40, 64, kShort).first;
}

}  // namespace

Parameters measure(const EndpointCosts& engine, const EndpointCosts& switches) {
  const Bench bench(engine, switches, 100'000);
  const std::uint64_t eager = engine.eager_limit;
  Parameters found;
  measure_engine(bench, eager, found);

  const auto ping = [&](const Bench& on, std::uint64_t bytes) {
    return on.run({Moves().send({1}, bytes), Moves().arrive({0}, bytes).keep()})[1];
  };
  // The first segment of a message that is as long as the longest one, and the way of the others behind it.
  const std::uint64_t segment = engine.segment, first = engine.segment_of(segment);
  const auto of_first = [&](const Overhead& cost) { return cost.of(static_cast<double>(first)); };
  const double way =
      bench.way(first) + bench.busy(first) * static_cast<double>(segment - first) / static_cast<double>(first);
  // The grant of a message that both ends are given at once, beside its way, which is that of a header.
  found.grant = ping(bench, segment) - found.call - of_first(found.send) - way - of_first(found.receive) - bench.way(0);
  found.gap_granted = gaps(bench, 4, 12, segment).second - (way + bench.way(0)) / 2;
  // A link that is no limit shows what the engine is.
  const Bench wide(engine, switches, 1'600'000);
  found.byte = (ping(wide, 128 * segment) - ping(wide, 64 * segment)) / static_cast<double>(64 * segment);

  // Ranks 0 and 1 give the unit a vector each, rank 2 takes the sum.
  found.alpha = line(eager, [&](std::uint64_t bytes) {
    Moves taken;
    taken.arrive({3}, bytes);
    if (bytes != 0) taken.keep();
    const auto one = bench.run(
        {Moves().send({3}, bytes), Moves().send({3}, bytes), taken, Moves().arrive({0, 1}, bytes).sum().also_send({2})},
        true);
    const auto length = static_cast<double>(bytes);
    return one[2] - found.call - found.send.of(length) - bench.to_unit(bytes) - bench.from_unit(bytes) -
           found.receive.of(length);
  });
  const auto summed = [&](const Ranks& from) {
    const auto unit = static_cast<std::uint32_t>(from.size()) + 1;
    std::vector<Program> programs(from.size(), Moves().send({unit}, kShort));
    programs.push_back(Moves().arrive({unit}, kShort).keep());
    programs.push_back(Moves().arrive(from, kShort).sum().also_send({unit - 1}));
    return bench.run(std::move(programs), true)[unit - 1];
  };
  found.alpha_child = (summed({0, 1, 2, 3}) - summed({0, 1})) / 2;
  const auto through = [&](std::uint32_t n, std::uint64_t bytes) {
    std::vector<Moves> senders(4);
    Moves taken, unit;
    for (std::uint32_t i = 0; i < n; ++i) {
      // Of four ranks in turn, so that the unit is what limits them, or the one that takes.
      senders[i % 4].send({5}, bytes);
      taken.arrive({5}, bytes).keep();
      unit.arrive({i % 4}, bytes).also_send({4});
    }
    std::vector<Program> programs(senders.begin(), senders.end());
    programs.push_back(taken);
    programs.push_back(unit);
    return bench.run(std::move(programs), true)[5];
  };
  found.gap_switch = (through(28, kShort) - through(12, kShort)) / 16;
  const auto asked = [&](std::uint32_t n) {
    Moves sender, taken, unit;
    for (std::uint32_t i = 0; i < n; ++i) {
      sender.send({2}, segment);
      unit.arrive({0}, segment).also_send({1});
      taken.arrive({2}, segment).keep();
    }
    return bench.run({sender, taken, unit}, true)[0];
  };
  found.gap_asked = (asked(8) - asked(4)) / 4 - bench.to_unit(0) - bench.from_unit(0);
  return found;
}

}  // namespace unisono::sim
