#include "sim/price/rules.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/facts.hpp"
#include "sim/model/calls.hpp"
#include "sim/price/logcn.hpp"
#include "sim/price/loggp.hpp"
#include "sim/price/served.hpp"

namespace unisono::sim {
namespace {

constexpr std::uint64_t kElement = 4;                            ///< bytes: prices are of fp32
constexpr std::uint64_t kLeast = 64;                             ///< bytes of a vector; a block has less
constexpr std::uint64_t kLeastBlock = 16;                        ///< bytes
constexpr std::uint64_t kMost = std::uint64_t{4} << 20U;         ///< bytes of a vector, or of all blocks together
constexpr std::uint64_t kMostOfBlock = std::uint64_t{1} << 20U;  ///< bytes
constexpr double kAlike = 0.99;    ///< the choice of shorter calls stays while it is so near to the best
constexpr double kHopeless = 1.5;  ///< by what is known of shorter calls, an algorithm takes so much longer
constexpr double kClose = 1.05;    ///< lengths between which a change is looked for no further

/// Communicators of `least` to `most` ranks, priced as one of `ranks`.
struct Class {
  std::uint32_t least, most, ranks;
};

std::vector<Class> classes_of(std::uint32_t ranks) {
  std::vector<Class> found;
  for (std::uint32_t power = 2; power < ranks; power *= 2) {
    found.push_back({power, power, power});
    const std::uint32_t least = power + 1, most = std::min(2 * power, ranks) - 1;
    if (least <= most) found.push_back({least, most, std::min(power + power / 2, most)});
  }
  found.push_back({ranks, ranks, ranks});
  return found;
}

/// What calls of a length take, and by what they are quickest.
struct Sample {
  std::uint64_t bytes = 0;
  std::vector<double> cycles;  ///< by contender; kUnknown of those that were not priced
  int best = -1;               ///< contender; of all
  int among = -1;              ///< of those that are not the switches'

  bool alike(const Sample& other) const { return best == other.best && among == other.among; }
};
constexpr double kUnknown = std::numeric_limits<double>::infinity();

/// Prices of a collective for a class of ranks.
class Pricing {
 public:
  Pricing(const PricedJob& job, Collective collective, const Class& of) : job_(job), collective_(collective), of_(of) {
    const bool carried = served(job.ways.topology(), of.ranks, job.hardware).reason.empty();
    for (std::size_t i = 0; i < algorithms().size(); ++i) {
      const Algorithm& one = algorithms()[i];
      if (one.collective != collective || one.direct || one.params_words != nullptr) continue;
      if (one.switched ? carried : admitted(one)) contenders_.push_back(i);
    }
  }

  /// By length, with some between those of which the choices differ.
  std::vector<Sample> samples() {
    const CollectiveFacts facts = facts_of(collective_);
    std::vector<double> parts(contenders_.size(), 1);
    if (!facts.data) return {sample(0, parts, {})};
    const std::uint64_t most = facts.blocks ? std::min(kMostOfBlock, kMost / of_.ranks) : kMost;
    for (std::uint64_t bytes = facts.blocks ? kLeastBlock : kLeast; bytes <= most; bytes *= 2) {
      const Sample next = sample(bytes, parts, found_.empty() ? Sample{} : found_.back());
      for (std::size_t i = 0; i < parts.size(); ++i) {
        // What is quickest takes twice as long for twice the bytes, or less, and nothing takes less than before.
        parts[i] = (next.cycles[i] == kUnknown ? parts[i] : part(next, i)) / 2;
      }
      if (!found_.empty()) refine(Sample(found_.back()), next);
      found_.push_back(next);
    }
    return found_;
  }

  const Algorithm& algorithm(int contender) const { return algorithms()[position(contender)]; }
  std::size_t position(int contender) const { return contenders_[static_cast<std::size_t>(contender)]; }

 private:
  bool admitted(const Algorithm& one) const {
    const auto by = [&](std::uint32_t ranks) {
      return one.admits == nullptr || one.admits(plain_call(collective_, ranks, 0, Datatype::kFp32));
    };
    return by(of_.least) && by(of_.ranks) && by(of_.most);
  }

  double cycles(std::size_t contender, std::uint64_t bytes) const {
    const Algorithm& one = algorithms()[contenders_[contender]];
    const Call call = plain_call(collective_, of_.ranks, bytes, Datatype::kFp32);
    const ModelledCall programs = call_of(job_.ways.topology(), one, call);
    if (!one.switched) return loggp(job_.ways, programs, job_.parameters, job_.engine);
    return logcn(job_.ways, call, programs, job_.parameters, job_.engine).total();
  }

  /// How much longer than the quickest among the ranks.
  static double part(const Sample& of, std::size_t contender) {
    return of.cycles[contender] / of.cycles[static_cast<std::size_t>(of.among)];
  }

  /// Prices those contenders whose part is not hopeless.
  Sample sample(std::uint64_t bytes, const std::vector<double>& parts, const Sample& before) const {
    Sample made;
    made.bytes = bytes;
    made.cycles.assign(contenders_.size(), kUnknown);
    const auto less = [&](int contender, int than) {
      return than < 0 || made.cycles[static_cast<std::size_t>(contender)] < made.cycles[static_cast<std::size_t>(than)];
    };
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      const auto contender = static_cast<int>(i);
      const bool switched = algorithm(contender).switched;
      if (!switched && parts[i] > kHopeless) continue;
      made.cycles[i] = cycles(i, bytes);
      if (less(contender, made.best)) made.best = contender;
      if (!switched && less(contender, made.among)) made.among = contender;
    }
    const auto stay = [&](int& choice, int old) {
      if (old < 0 || choice < 0) return;
      const double least = made.cycles[static_cast<std::size_t>(choice)];
      if (made.cycles[static_cast<std::size_t>(old)] * kAlike <= least) choice = old;
    };
    const double least_among = made.among < 0 ? kUnknown : made.cycles[static_cast<std::size_t>(made.among)];
    stay(made.best, before.best);
    stay(made.among, before.among);
    // One rule will do for both. Switches are taken where they gain.
    if (!algorithm(made.best).switched || least_among * kAlike <= made.cycles[static_cast<std::size_t>(made.best)]) {
      made.best = made.among;
    }
    return made;
  }

  void refine(const Sample& from, const Sample& to) {
    const auto middle =
        static_cast<std::uint64_t>(std::sqrt(static_cast<double>(from.bytes) * static_cast<double>(to.bytes)));
    const std::uint64_t bytes = middle / kElement * kElement;
    if (from.alike(to) || bytes <= from.bytes ||
        static_cast<double>(to.bytes) <= kClose * static_cast<double>(from.bytes)) {
      return;
    }
    std::vector<double> parts;
    for (std::size_t i = 0; i < contenders_.size(); ++i) parts.push_back(std::min(part(from, i), part(to, i)));
    const Sample between = sample(bytes, parts, from);
    refine(from, between);
    found_.push_back(between);
    refine(between, to);
  }

  const PricedJob& job_;
  Collective collective_;
  Class of_;
  std::vector<std::size_t> contenders_;  ///< positions in the table
  std::vector<Sample> found_;
};

void add_rules(const PricedJob& job, Collective collective, const Class& of, std::vector<Rule>& rules) {
  Pricing pricing(job, collective, of);
  const std::vector<Sample> samples = pricing.samples();
  Rule rule;
  rule.min_ranks = of.least;
  rule.max_ranks = of.most;
  rule.groups = Which::kWithout;  // what is priced has none
  // Where switches are the quickest, and then what is among the ranks, for all that the first ones leave.
  for (const bool switched : {true, false}) {
    rule.min_bytes = 0;
    rule.switches = !switched;
    const auto choice = [&](std::size_t i) { return switched ? samples[i].best : samples[i].among; };
    for (std::size_t first = 0, next = 0; first < samples.size(); first = next) {
      while (next < samples.size() && choice(next) == choice(first)) ++next;
      // The change lies somewhere between two lengths that were priced.
      const std::uint64_t last = samples[next - 1].bytes;
      rule.max_bytes = next == samples.size() ? kAnyBytes : last + (samples[next].bytes - last) / 2;
      rule.position = static_cast<std::uint16_t>(pricing.position(choice(first)));
      if (pricing.algorithm(choice(first)).switched == switched) rules.push_back(rule);
      rule.min_bytes = rule.max_bytes + 1;
    }
  }
}

}  // namespace

std::vector<Rule> rules_by_price(const PricedJob& job, std::optional<Collective> only) {
  std::vector<Rule> rules;
  for (const Collective collective : kAllCollective) {
    const CollectiveFacts facts = facts_of(collective);
    if (facts.kind != CallKind::kCollective || facts.vectors || (only && *only != collective)) continue;
    for (const Class& one : classes_of(job.ranks)) {
      if (!only || one.ranks == job.ranks) add_rules(job, collective, one, rules);
    }
  }
  return rules;
}

}  // namespace unisono::sim
