// Unisono's C++ interface: header-only, C++20, over the C interface (unisono.h).
//
//   unisono::Context context;                                  // joins the job `unisono run` made
//   unisono::Communicator world = context.world();
//   unisono::Buffer<float> mine(1000), sum(1000);
//   world.allreduce(mine, sum, unisono::Op::kSum);
//
// Buffers are any contiguous ranges (std::vector, std::array, std::span, Buffer) whose element type has
// a datatype; lengths are elements. Every operation has an `_async` form that returns a Request; its
// buffers must stay alive and untouched until the request has completed. All arguments are checked
// before anything is sent. Failures are thrown as Error.
//
// Thread-safety: objects of one context may be used by several threads at once; one object is not to be
// destroyed or assigned while another thread uses it. Collective operations of one communicator must
// be started in the same order on all ranks.
#ifndef UNISONO_UNISONO_HPP
#define UNISONO_UNISONO_HPP

#if !defined(__cplusplus) || __cplusplus <= 201703L
#error "unisono.hpp needs C++20: compile with -std=c++20 or newer, or include unisono.h, the interface in C."
#include "unisono.hpp ends here."  // this is fatal, so that what follows from the error above is not reported
#endif

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "unisono/api/buffers.hpp"
#include "unisono/api/requests.hpp"
#include "unisono/unisono.h"

namespace unisono {
inline namespace api {

/// Rarely used arguments of an operation.
struct Options {
  std::string algorithm = {};              ///< name from `unisono algorithms`; empty = automatic
  double timeout_seconds = 0;              ///< deadline; 0 = the communicator's
  std::vector<const Request*> after = {};  ///< calls of this context that must complete first
  /// false: the `_async` form only checks the call and prepares it; Request::start starts it, as often as it is wanted.
  bool start = true;
  /// Of a call of floats: what they travel as, UNISONO_FP16 or UNISONO_BF16 (see unisono_call); 0 = as they are.
  unisono_datatype wire_datatype = 0;
  /// Of a reduction: what this rank gives is multiplied by the first, the result by the second, in which all ranks
  /// agree.
  std::optional<double> pre_scale = {};
  std::optional<double> post_scale = {};
};

/// Counts and displacements of one side of a v-collective, in elements, one per rank. Empty
/// displacements: one block behind the other.
struct Layout {
  std::span<const std::int64_t> counts;
  std::span<const std::int64_t> displacements = {};
};

/// An operator of the user; see unisono_op_create. Calls that use it must have completed when it is destroyed.
class UserOp {
 public:
  UserOp(const std::string& name, unisono_op_function function, void* context = nullptr, bool commutative = true) {
    detail::check(unisono_op_create(name.c_str(), function, context, commutative ? 1 : 0, &op_));
  }
  UserOp(const UserOp&) = delete;
  UserOp& operator=(const UserOp&) = delete;
  ~UserOp() { unisono_op_free(op_); }
  operator Op() const noexcept { return static_cast<Op>(op_); }  // NOLINT(google-explicit-constructor)

 private:
  unisono_op op_ = 0;
};

/// Programs of the user, one for each rank (docs/program-files.md). Copies share them.
class Program {
 public:
  /// Reads a program file. Throws Error(malformed_program) that says where.
  static Program load(const std::string& path) {
    unisono_program* handle = nullptr;
    detail::check(unisono_program_load(path.c_str(), &handle));
    return Program(handle);
  }
  /// Reads the bytes of one.
  static Program parse(std::string_view bytes) {
    unisono_program* handle = nullptr;
    detail::check(unisono_program_parse(bytes.data(), bytes.size(), &handle));
    return Program(handle);
  }
  /// Ranks it is for.
  std::uint32_t size() const {
    std::uint32_t ranks = 0;
    detail::check(unisono_program_size(handle_.get(), &ranks));
    return ranks;
  }
  unisono_program* handle() const noexcept { return handle_.get(); }

 private:
  explicit Program(unisono_program* handle) : handle_(handle, &unisono_program_free) {}
  std::shared_ptr<unisono_program> handle_;
};

/// The same of an exchange with a datatype for each peer: counts are elements of these (UNISONO_FP64 and so on),
/// displacements are bytes.
struct TypedLayout {
  std::span<const std::int64_t> counts;
  std::span<const std::int64_t> displacements;
  std::span<const unisono_datatype> datatypes;
};

/// Edges between the ranks of a communicator; Communicator::graph makes it. Copies share it.
class Graph {
 public:
  std::size_t sources() const noexcept { return sources_; }
  std::size_t destinations() const noexcept { return destinations_; }
  unisono_graph* handle() const noexcept { return handle_.get(); }

 private:
  friend class Communicator;
  Graph(unisono_graph* handle, std::size_t sources, std::size_t destinations)
      : handle_(handle, &unisono_graph_free), sources_(sources), destinations_(destinations) {}
  std::shared_ptr<unisono_graph> handle_;
  std::size_t sources_;
  std::size_t destinations_;
};

/// Hints for a communicator that is made; zero means none. See unisono_communicator_settings.
struct CommunicatorSettings {
  std::uint32_t group_size = 0;   ///< ranks of a group for two-level algorithms; equal on all members
  std::uint32_t eager_limit = 0;  ///< bytes of the largest eager message; the least of all members
  double timeout_seconds = 0;     ///< default deadline of a call; the least of all members
  bool lanes = true;              ///< false, on one member: no use of shared memory but for messages
  std::string name = {};          ///< as of Communicator::set_name, on this rank
  std::uint64_t group = 0;        ///< ranks that give equal numbers are a group, of any size and of any ranks; 0: none
  bool streams = false;           ///< for calls with streams, on all members: see unisono_communicator_settings
};

/// What a collective call ran with.
struct LastAlgorithm {
  std::string_view name;   ///< of the table of algorithms; lives for ever
  bool automatic = false;  ///< the call named none
};

/// A performance counter of an engine.
struct CounterValue {
  std::string_view name;  ///< docs/reference/spec.md#counter; lives for ever
  std::uint64_t value = 0;
};

/// The calls that a thread starts on a communicator while one of these lives are submitted together when it ends, small
/// all-reduces fused into one: see unisono_group_begin and docs/forms.md.
class Group {
 public:
  explicit Group(unisono_communicator* communicator) : communicator_(communicator) {
    detail::check(unisono_group_begin(communicator));
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  /// Submits the calls now.
  void end() {
    if (communicator_ != nullptr) detail::check(unisono_group_end(std::exchange(communicator_, nullptr)));
  }
  ~Group() {
    if (communicator_ != nullptr) unisono_group_end(communicator_);
  }

 private:
  unisono_communicator* communicator_;
};

namespace detail {

/// A communicator's handle, and what makes calls of it.
class Caller {
 public:
  std::uint32_t rank() const {
    std::uint32_t value = 0;
    detail::check(unisono_communicator_rank(handle_.get(), &value));
    return value;
  }
  std::uint32_t size() const {
    std::uint32_t value = 0;
    detail::check(unisono_communicator_size(handle_.get(), &value));
    return value;
  }

 protected:
  Caller() = default;
  Caller(unisono_communicator* handle, bool owned)
      : handle_(
            handle,
            owned ? +[](unisono_communicator* c) { unisono_communicator_free(c); } : +[](unisono_communicator*) {}) {}

  /// A call under construction, with the memory its pointers refer to.
  class Prepared {
   public:
    explicit Prepared(unisono_collective collective, const Options& options) : options_(options) {
      call_.struct_size = sizeof call_;
      call_.collective = collective;
      for (const Request* request : options.after) after_.push_back(request->handle());
    }

    template <class Range>
    Prepared& src(Range&& range) {
      if constexpr (std::is_same_v<std::remove_cvref_t<Range>, InPlace>) {
        call_.in_place = 1;
      } else if constexpr (detail::kIsStream<std::remove_cvref_t<Range>>) {
        call_.datatype = detail::datatype_of<detail::Element<Range>>();
        call_.streams |= UNISONO_SRC_STREAM;
        call_.src_port = range.port;
      } else {
        call_.datatype = detail::datatype_of<detail::Element<Range>>();
        call_.src = std::ranges::data(range);
        call_.src_bytes = std::ranges::size(range) * sizeof(detail::Element<Range>);
      }
      return *this;
    }
    template <class Range>
    Prepared& dst(Range&& range) {
      call_.datatype = detail::datatype_of<detail::Element<Range>>();
      if constexpr (detail::kIsStream<std::remove_cvref_t<Range>>)
        return dst_port(range.port);
      else {  // NOLINT(readability-else-after-return): a stream has no data
        call_.dst = std::ranges::data(range);
        call_.dst_bytes = std::ranges::size(range) * sizeof(detail::Element<Range>);
        return *this;
      }
    }
    Prepared& dst_port(std::uint32_t port) {
      call_.streams |= UNISONO_DST_STREAM;
      call_.dst_port = port;
      return *this;
    }
    Prepared& op(Op op) {
      call_.op = static_cast<int>(op);
      return *this;
    }
    Prepared& root(std::int64_t root) {
      call_.root = root;
      return *this;
    }
    Prepared& tag(std::int64_t tag) {
      call_.tag = tag;
      return *this;
    }
    Prepared& count(std::size_t count) {
      call_.count = static_cast<std::int64_t>(count);
      return *this;
    }
    Prepared& window_offset(std::uint64_t bytes) {
      call_.window_offset = bytes;
      return *this;
    }
    Prepared& program(const Program& program) {
      call_.program = program.handle();
      return *this;
    }
    Prepared& along(const Graph& graph) {
      call_.graph = graph.handle();
      return *this;
    }
    template <class S, class D>
    Prepared& typed(const S& src, D&& dst, const TypedLayout& sends, const TypedLayout& receives, std::size_t ranks) {
      static_assert(sizeof(detail::Element<D>) == 1, "dst is a range of bytes");
      call_.dst = std::ranges::data(dst);
      call_.dst_bytes = std::ranges::size(dst);
      this->receives({receives.counts, receives.displacements}, ranks);
      call_.recv_datatypes = by_rank(receives.datatypes, ranks);
      if constexpr (std::is_same_v<S, InPlace>) {
        call_.in_place = 1;
      } else {
        static_assert(sizeof(detail::Element<S>) == 1, "src is a range of bytes");
        call_.src = std::ranges::data(src);
        call_.src_bytes = std::ranges::size(src);
        this->sends({sends.counts, sends.displacements}, ranks);
        call_.send_datatypes = by_rank(sends.datatypes, ranks);
      }
      return *this;
    }
    Prepared& sends(const Layout& layout, std::size_t ranks) {
      fill(layout, ranks, "send", call_.send_counts, call_.send_displacements);
      return *this;
    }
    /// Of a call whose counts the root alone needs: elsewhere they may be empty, and `own` says how many it has.
    Prepared& sends(const Layout& layout, std::size_t ranks, bool at_root, std::size_t own) {
      if (!at_root && layout.counts.empty() && layout.displacements.empty()) return count(own);
      return sends(layout, ranks);
    }
    Prepared& receives(const Layout& layout, std::size_t ranks) {
      fill(layout, ranks, "receive", call_.recv_counts, call_.recv_displacements);
      return *this;
    }
    /// Of a call whose counts the root alone needs: elsewhere they may be empty, and `own` says how many it has.
    Prepared& receives(const Layout& layout, std::size_t ranks, bool at_root, std::size_t own) {
      if (!at_root && layout.counts.empty() && layout.displacements.empty()) return count(own);
      return receives(layout, ranks);
    }
    bool starts() const { return options_.start; }
    const unisono_call* get() {
      call_.algorithm = options_.algorithm.empty() ? nullptr : options_.algorithm.c_str();
      call_.timeout_seconds = options_.timeout_seconds;
      call_.wire_datatype = options_.wire_datatype;
      call_.pre_scale = options_.pre_scale ? &*options_.pre_scale : nullptr;
      call_.post_scale = options_.post_scale ? &*options_.post_scale : nullptr;
      call_.wait_for = after_.data();
      call_.wait_for_count = after_.size();
      return &call_;
    }

   private:
    static const unisono_datatype* by_rank(std::span<const unisono_datatype> datatypes, std::size_t ranks) {
      constexpr unisono_result kInvalidDatatype = 3;
      if (datatypes.size() == ranks) return datatypes.data();
      throw Error(kInvalidDatatype, std::to_string(datatypes.size()) +
                                        " datatypes were given; give one for each of the " + std::to_string(ranks) +
                                        " ranks");
    }
    static void fill(const Layout& layout, std::size_t ranks, const char* side, const std::int64_t*& counts,
                     const std::int64_t*& displacements) {
      constexpr unisono_result kInvalidCount = 2;
      if (layout.counts.size() != ranks || (!layout.displacements.empty() && layout.displacements.size() != ranks)) {
        throw Error(kInvalidCount, std::to_string(layout.counts.size()) + " " + side + " counts and " +
                                       std::to_string(layout.displacements.size()) +
                                       " displacements were given; give one count, and one or no displacement, for "
                                       "each of the " +
                                       std::to_string(ranks) + " ranks or edges");
      }
      counts = layout.counts.data();
      displacements = layout.displacements.empty() ? nullptr : layout.displacements.data();
    }

    unisono_call call_{};
    const Options& options_;
    std::vector<unisono_request*> after_;
  };

  /// A call in place whose root has another buffer than all others: dst if it `gathers`, and they src.
  template <class D>
  Prepared rooted(unisono_collective collective, bool gathers, D&& buffer, std::uint32_t root,
                  const Options& options) const {
    Prepared call(collective, options);
    call.src(kInPlace).root(root);
    if (gathers == (rank() == root)) {
      call.dst(buffer);
    } else {
      call.src(buffer);
    }
    return call;
  }

  template <class Range>
  static std::size_t length(const Range& range) {
    if constexpr (std::is_same_v<std::remove_cvref_t<Range>, InPlace>) {
      return 0;
    } else {
      return std::ranges::size(range);
    }
  }
  template <class Range>
  static constexpr bool in_place(const Range&) {
    return std::is_same_v<std::remove_cvref_t<Range>, InPlace>;
  }

  Request start(Prepared& prepared) const {
    unisono_request* request = nullptr;
    const auto make = prepared.starts() ? unisono_start : unisono_prepare;
    detail::check(make(handle_.get(), prepared.get(), &request));
    return Request(request);
  }
  static void refuse_unstarted(const Prepared& prepared, const char* instead = "its _async form") {
    if (prepared.starts()) return;
    constexpr unisono_result kInvalidArgument = 1;
    throw Error(kInvalidArgument, std::string("Options::start is false for a call that blocks; take ") + instead);
  }
  void run(Prepared& prepared) const {
    refuse_unstarted(prepared);
    detail::check(unisono_run(handle_.get(), prepared.get()));
  }

  std::shared_ptr<unisono_communicator> handle_;
};

}  // namespace detail
}  // namespace api
}  // namespace unisono

#include "generated/collectives.hpp"

namespace unisono {
inline namespace api {

/// An ordered set of ranks. Copies are the same communicator; the last one frees it (the world belongs
/// to its context). Shapes and meaning of all operations: docs/model.md, rules 17 to 19.
class Communicator : public detail::Calls {
 public:
  Communicator() = default;
  Communicator(unisono_communicator* handle, bool owned) : Calls(handle, owned) {}

  /// What people call the communicator, which errors and dumps say beside its number; see
  /// unisono_communicator_set_name. Empty: nothing.
  void set_name(const std::string& name) { detail::check(unisono_communicator_set_name(handle_.get(), name.c_str())); }
  std::string name() const {
    const char* name = nullptr;
    detail::check(unisono_communicator_name(handle_.get(), &name));
    return name;
  }
  /// Default deadline of operations, in seconds.
  void set_timeout(double seconds) { detail::check(unisono_communicator_set_timeout(handle_.get(), seconds)); }
  /// Fails the communicator on all reachable members.
  void revoke(const std::string& reason) { detail::check(unisono_communicator_revoke(handle_.get(), reason.c_str())); }
  /// The algorithm of the last collective call begun here; empty before there was one. See unisono_last_algorithm.
  LastAlgorithm last_algorithm() const {
    const char* name = nullptr;
    int automatic = 0;
    detail::check(unisono_last_algorithm(handle_.get(), &name, &automatic));
    return {name == nullptr ? std::string_view{} : std::string_view{name}, automatic != 0};
  }
  /// What its members agreed on when it was made, and how it is now.
  unisono_communicator_state state() const {
    unisono_communicator_state now{};
    now.struct_size = sizeof now;
    detail::check(unisono_communicator_describe(handle_.get(), &now));
    return now;
  }
  /// The counters of the engine that carries out the calls of this communicator (docs/housekeeping.md#counters). They
  /// are read one after the other, each exact when it is read.
  std::vector<CounterValue> counters() const {
    std::vector<CounterValue> values;
    for (;;) {
      const char* name = nullptr;
      std::uint64_t value = 0;
      detail::check(unisono_counter(handle_.get(), values.size(), &name, &value));
      if (name == nullptr) return values;
      values.push_back({name, value});
    }
  }
  /// Begins a group of calls of this thread; it ends with the object.
  Group group() const { return Group(handle_.get()); }
  /// Frees the communicator now, for all copies. Calls in flight on it fail.
  void free() { detail::check(unisono_communicator_free(handle_.get())); }
  /// Whether this is a communicator: false for the result of a split with negative colour.
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  unisono_communicator* handle() const noexcept { return handle_.get(); }

  /// Collective. Ranks of equal colour share a new communicator, ordered by key, then by rank here; a
  /// negative colour gets none. `group_size`: ranks of a group for two-level algorithms; 0 = hosts.
  Communicator split(std::int64_t colour, std::int64_t key = 0, std::uint32_t group_size = 0) const {
    unisono_communicator* made = nullptr;
    detail::check(unisono_split(handle_.get(), colour, key, group_size, &made));
    return made == nullptr ? Communicator() : Communicator(made, true);
  }

  /// Collective over the ranks that are left, also when the communicator is revoked: one of them, in their order. A
  /// rank that dies meanwhile is left out as well.
  Communicator shrink() const {
    unisono_communicator* made = nullptr;
    detail::check(unisono_shrink(handle_.get(), &made));
    return Communicator(made, true);
  }
  /// Collective likewise: the bits that `value` has in common on all ranks that are left, the same on all of them.
  std::uint64_t agree(std::uint64_t value) const {
    detail::check(unisono_agree(handle_.get(), &value));
    return value;
  }
  /// The ranks that have died or left, as far as this one can see. Not collective.
  std::vector<std::uint32_t> failed() const {
    std::vector<std::uint32_t> ranks(size());
    std::size_t count = 0;
    detail::check(unisono_failed(handle_.get(), ranks.data(), ranks.size(), &count));
    ranks.resize(count);
    return ranks;
  }

  /// The same with settings.
  Communicator split(std::int64_t colour, std::int64_t key, const CommunicatorSettings& settings) const {
    unisono_communicator* made = nullptr;
    const unisono_communicator_settings given = plain(settings);
    detail::check(unisono_split_with(handle_.get(), colour, key, &given, &made));
    return made == nullptr ? Communicator() : Communicator(made, true);
  }
  /// Collective. The same ranks in the same order; calls have nothing to do with those here.
  Communicator dup(const CommunicatorSettings& settings = {}) const {
    unisono_communicator* made = nullptr;
    const unisono_communicator_settings given = plain(settings);
    detail::check(unisono_dup(handle_.get(), &given, &made));
    return Communicator(made, true);
  }
  /// Collective. The listed ranks, in that order; all ranks give the same list, and those that are not in it get none.
  Communicator subset(std::span<const std::uint32_t> ranks, const CommunicatorSettings& settings = {}) const {
    unisono_communicator* made = nullptr;
    const unisono_communicator_settings given = plain(settings);
    detail::check(unisono_subset(handle_.get(), ranks.data(), ranks.size(), &given, &made));
    return made == nullptr ? Communicator() : Communicator(made, true);
  }
  /// The same, collective over the listed ranks only. `tag` tells apart what several threads make at the same time.
  Communicator create_group(std::span<const std::uint32_t> ranks, std::int64_t tag = 0,
                            const CommunicatorSettings& settings = {}) const {
    unisono_communicator* made = nullptr;
    const unisono_communicator_settings given = plain(settings);
    detail::check(unisono_create_group(handle_.get(), ranks.data(), ranks.size(), tag, &given, &made));
    return Communicator(made, true);
  }

  /// Collective. Exposes memory for `put` and `get`; it must stay alive until another window, or none
  /// (an empty span), has taken its place.
  template <class T>
  void window(std::span<T> memory) {
    detail::check(unisono_window(handle_.get(), memory.data(), memory.size_bytes()));
  }

  /// Sends src to stream port `port` of `peer`, where a kernel reads it; no receive is called there.
  template <Source S>
  void stream_put(const S& src, std::uint32_t peer, std::uint32_t port, const Options& options = {}) const {
    Prepared call(UNISONO_SEND, options);
    call.src(src).dst_port(port).root(peer).count(length(src));
    run(call);
  }
  template <Source S>
  Request stream_put_async(const S& src, std::uint32_t peer, std::uint32_t port, const Options& options = {}) const {
    Prepared call(UNISONO_SEND, options);
    call.src(src).dst_port(port).root(peer).count(length(src));
    return start(call);
  }

  /// Receives at most dst's length from `peer`, or from kAnySource, with `tag`, or kAnyTag; says what came.
  template <Destination D>
  Status recv(D&& dst, std::int64_t peer, std::int64_t tag = 0, const Options& options = {}) const {
    Prepared call(UNISONO_RECV, options);
    call.dst(dst).root(peer).tag(tag).count(length(dst));
    refuse_unstarted(call);
    unisono_status status = detail::empty_status();
    detail::check(unisono_recv(handle_.get(), call.get(), &status));
    return detail::status_of(status);
  }
  /// The same in flight; what came: Request::status.
  template <Destination D>
  Request recv_async(D&& dst, std::int64_t peer, std::int64_t tag = 0, const Options& options = {}) const {
    Prepared call(UNISONO_RECV, options);
    call.dst(dst).root(peer).tag(tag).count(length(dst));
    return start(call);
  }

  /// Waits until there is a message that such a receive would get, and says which; it stays. `timeout` in seconds; 0:
  /// the communicator's.
  Status probe(std::int64_t source = kAnySource, std::int64_t tag = kAnyTag, double timeout = 0) const {
    unisono_status status = detail::empty_status();
    detail::check(unisono_probe(handle_.get(), source, tag, timeout, &status));
    return detail::status_of(status);
  }
  /// The same without waiting; nothing if there is none now.
  std::optional<Status> iprobe(std::int64_t source = kAnySource, std::int64_t tag = kAnyTag) const {
    int found = 0;
    unisono_status status = detail::empty_status();
    detail::check(unisono_iprobe(handle_.get(), source, tag, &found, &status));
    return found != 0 ? std::optional(detail::status_of(status)) : std::nullopt;
  }

  /// Sends all of src to `to`, and receives at most dst's length from `source`, at once: ranks that exchange, or shift
  /// data around a circle, cannot block one another. The element types may differ, and the buffers must not overlap.
  /// Returns the number of elements that came.
  template <Source S, Destination D>
  std::int64_t sendrecv(const S& src, std::uint32_t to, D&& dst, std::int64_t source, std::int64_t tag = 0,
                        const Options& options = {}) const {
    return sendrecv(src, to, tag, dst, source, tag, options);
  }
  /// The same with a tag for each direction.
  template <Source S, Destination D>
  std::int64_t sendrecv(const S& src, std::uint32_t to, std::int64_t send_tag, D&& dst, std::int64_t source,
                        std::int64_t recv_tag, const Options& options = {}) const {
    Prepared send(UNISONO_SEND, options);
    send.src(src).root(to).tag(send_tag).count(length(src));
    Prepared recv(UNISONO_RECV, options);
    recv.dst(dst).root(source).tag(recv_tag).count(length(dst));
    refuse_unstarted(send, "send_async and recv_async");
    std::int64_t received = 0;
    detail::check(unisono_sendrecv(handle_.get(), send.get(), recv.get(), &received));
    return received;
  }

  using Calls::alltoallv;
  using Calls::alltoallv_async;
  /// The order of the arguments of earlier versions.
  template <Destination D, SourceFor<D> S>
  [[deprecated("write alltoallv(src, dst, sends, receives)")]] void alltoallv(const S& src, const Layout& sends,
                                                                              D&& dst, const Layout& receives,
                                                                              const Options& options = {}) const {
    alltoallv(src, dst, sends, receives, options);
  }
  template <Destination D, SourceFor<D> S>
  [[deprecated("write alltoallv_async(src, dst, sends, receives)")]] Request alltoallv_async(
      const S& src, const Layout& sends, D&& dst, const Layout& receives, const Options& options = {}) const {
    return alltoallv_async(src, dst, sends, receives, options);
  }

  /// As alltoallv, with a datatype for each peer. src and dst are bytes: ranges whose elements are of one byte. What
  /// travels between two ranks must have the same length in bytes on both; whether they call it the same type is not
  /// checked.
  template <class S, class D>
  void alltoallw(const S& src, D&& dst, const TypedLayout& sends, const TypedLayout& receives,
                 const Options& options = {}) const {
    Prepared call(UNISONO_ALLTOALLV, options);
    call.typed(src, dst, sends, receives, size());
    run(call);
  }
  template <class S, class D>
  Request alltoallw_async(const S& src, D&& dst, const TypedLayout& sends, const TypedLayout& receives,
                          const Options& options = {}) const {
    Prepared call(UNISONO_ALLTOALLV, options);
    call.typed(src, dst, sends, receives, size());
    return start(call);
  }
  /// The order of the arguments of earlier versions.
  template <class S, class D>
  [[deprecated("write alltoallw(src, dst, sends, receives)")]] void alltoallw(const S& src, const TypedLayout& sends,
                                                                              D&& dst, const TypedLayout& receives,
                                                                              const Options& options = {}) const {
    alltoallw(src, dst, sends, receives, options);
  }
  template <class S, class D>
  [[deprecated("write alltoallw_async(src, dst, sends, receives)")]] Request alltoallw_async(
      const S& src, const TypedLayout& sends, D&& dst, const TypedLayout& receives, const Options& options = {}) const {
    return alltoallw_async(src, dst, sends, receives, options);
  }

  /// Collective. Edges come here from `sources` and go from here to `destinations`; see unisono_graph_create.
  Graph graph(std::span<const std::int64_t> sources, std::span<const std::int64_t> destinations) const {
    unisono_graph* made = nullptr;
    detail::check(unisono_graph_create(handle_.get(), sources.size(), sources.data(), destinations.size(),
                                       destinations.data(), &made));
    return {made, sources.size(), destinations.size()};
  }

  /// src to every destination of the graph; a block of src's length from each source into dst, in the graph's order.
  template <Destination D, SourceFor<D> S>
  void neighbour_allgather(const Graph& graph, const S& src, D&& dst, const Options& options = {}) const {
    Prepared call(UNISONO_ALLGATHER, options);
    call.src(src).dst(dst).along(graph).count(length(src));
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request neighbour_allgather_async(const Graph& graph, const S& src, D&& dst, const Options& options = {}) const {
    Prepared call(UNISONO_ALLGATHER, options);
    call.src(src).dst(dst).along(graph).count(length(src));
    return start(call);
  }

  /// The same, with layout.counts[i] elements from source i.
  template <Destination D, SourceFor<D> S>
  void neighbour_allgatherv(const Graph& graph, const S& src, D&& dst, const Layout& layout,
                            const Options& options = {}) const {
    Prepared call(UNISONO_ALLGATHERV, options);
    call.src(src).dst(dst).along(graph).count(length(src)).receives(layout, graph.sources());
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request neighbour_allgatherv_async(const Graph& graph, const S& src, D&& dst, const Layout& layout,
                                     const Options& options = {}) const {
    Prepared call(UNISONO_ALLGATHERV, options);
    call.src(src).dst(dst).along(graph).count(length(src)).receives(layout, graph.sources());
    return start(call);
  }

  /// Block j of src to destination j of the graph; block i of dst from source i. All blocks have one length.
  template <Destination D, SourceFor<D> S>
  void neighbour_alltoall(const Graph& graph, const S& src, D&& dst, const Options& options = {}) const {
    Prepared call(UNISONO_ALLTOALL, options);
    call.src(src).dst(dst).along(graph).count(block(graph, src, dst));
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request neighbour_alltoall_async(const Graph& graph, const S& src, D&& dst, const Options& options = {}) const {
    Prepared call(UNISONO_ALLTOALL, options);
    call.src(src).dst(dst).along(graph).count(block(graph, src, dst));
    return start(call);
  }

  /// The same, with sends.counts[j] elements to destination j and receives.counts[i] from source i.
  template <Destination D, SourceFor<D> S>
  void neighbour_alltoallv(const Graph& graph, const S& src, D&& dst, const Layout& sends, const Layout& receives,
                           const Options& options = {}) const {
    Prepared call(UNISONO_ALLTOALLV, options);
    call.src(src).dst(dst).along(graph).sends(sends, graph.destinations()).receives(receives, graph.sources());
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request neighbour_alltoallv_async(const Graph& graph, const S& src, D&& dst, const Layout& sends,
                                    const Layout& receives, const Options& options = {}) const {
    Prepared call(UNISONO_ALLTOALLV, options);
    call.src(src).dst(dst).along(graph).sends(sends, graph.destinations()).receives(receives, graph.sources());
    return start(call);
  }
  /// The order of the arguments of earlier versions.
  template <Destination D, SourceFor<D> S>
  [[deprecated("write neighbour_alltoallv(graph, src, dst, sends, receives)")]] void neighbour_alltoallv(
      const Graph& graph, const S& src, const Layout& sends, D&& dst, const Layout& receives,
      const Options& options = {}) const {
    neighbour_alltoallv(graph, src, dst, sends, receives, options);
  }
  template <Destination D, SourceFor<D> S>
  [[deprecated("write neighbour_alltoallv_async(graph, src, dst, sends, receives)")]] Request neighbour_alltoallv_async(
      const Graph& graph, const S& src, const Layout& sends, D&& dst, const Layout& receives,
      const Options& options = {}) const {
    return neighbour_alltoallv_async(graph, src, dst, sends, receives, options);
  }

  /// Runs this rank's part of a user's program on src and dst, bound as they are. Collective.
  template <Source S, Destination D>
  void run_program(const Program& program, const S& src, D&& dst, const Options& options = {}) const {
    Prepared call(UNISONO_PROGRAM, options);
    call.src(src).dst(dst).program(program);
    run(call);
  }
  template <Source S, Destination D>
  Request run_program_async(const Program& program, const S& src, D&& dst, const Options& options = {}) const {
    Prepared call(UNISONO_PROGRAM, options);
    call.src(src).dst(dst).program(program);
    return start(call);
  }

 private:
  static unisono_communicator_settings plain(const CommunicatorSettings& settings) {
    return {sizeof(unisono_communicator_settings),
            settings.group_size,
            settings.eager_limit,
            settings.timeout_seconds,
            settings.lanes ? 0 : 1,
            settings.name.c_str(),
            settings.group,
            settings.streams ? 1 : 0,
            nullptr,
            nullptr};
  }

  /// Elements of an edge's block, where all have one length.
  template <class S, class D>
  static std::size_t block(const Graph& graph, const S& src, const D& dst) {
    if (graph.destinations() != 0) return std::ranges::size(src) / graph.destinations();
    return graph.sources() != 0 ? std::ranges::size(dst) / graph.sources() : 0;
  }
};

/// What bits of results may depend on; kUnsaid: what UNISONO_DETERMINISM says.
enum class Determinism : int {
  kUnsaid = 0,
  kFast = UNISONO_FAST,
  kRunStable = UNISONO_RUN_STABLE,
  kSizeStable = UNISONO_SIZE_STABLE,
  kPlacementStable = UNISONO_PLACEMENT_STABLE
};

/// What becomes of a call whose deadline has passed, on this rank; see unisono_settings::deadlines.
enum class Deadlines : int {
  kUnsaid = 0,  ///< what UNISONO_DEADLINES says
  kFail = UNISONO_DEADLINE_FAILS,
  kWarn = UNISONO_DEADLINE_WARNS,
  kOff = UNISONO_DEADLINE_OFF
};

/// Settings of a context; zero means the default. Communicators use the least of all members' values.
struct Settings {
  std::uint32_t eager_limit = 0;      ///< bytes of the largest eager message
  std::uint32_t segment_bytes = 0;    ///< bytes of the largest segment
  std::uint32_t rx_buffer_count = 0;  ///< receive buffers per peer
  double timeout_seconds = 0;         ///< default deadline of a call
  bool lanes = true;                  ///< false: no use of shared memory but for messages; for tests and comparisons
  bool offload = false;               ///< a thread makes progress on calls in flight: docs/offload.md
  Determinism determinism = Determinism::kUnsaid;  ///< equal on all ranks: docs/determinism.md
  /// What algorithms are to be used, as UNISONO_ALGORITHM has it (docs/tuning.md); none: what that says.
  std::optional<std::string> algorithms = {};
  Deadlines deadlines = Deadlines::kUnsaid;  ///< what becomes of calls whose deadline has passed
};

/// A job whose ranks are threads of this process. Each thread makes its own Context of it.
class ThreadJob {
 public:
  /// On network "shm" the ranks share memory, as on one host; on "loop" each counts as a host of its own, and there may
  /// be thousands (docs/large-jobs.md).
  explicit ThreadJob(std::uint32_t size, const char* network = "shm") {
    unisono_thread_job* handle = nullptr;
    detail::check(unisono_thread_job_create_on(size, network, &handle));
    handle_.reset(handle);
  }
  unisono_thread_job* handle() const noexcept { return handle_.get(); }

 private:
  struct Free {
    void operator()(unisono_thread_job* job) const noexcept { unisono_thread_job_free(job); }
  };
  std::unique_ptr<unisono_thread_job, Free> handle_;
};

/// Memory that is known to the library for longer than a call (Context::register_memory, unisono_register), until this
/// is destroyed or closed. The memory stays its owner's, who keeps it as long. Calls take it as before.
class Registration {
 public:
  /// Whether the kernel copies it between processes, where it copies at all (`unisono doctor`).
  bool kernel_copies() const { return state().kernel_copies != 0; }
  /// Whether it is allocated memory, which the ranks of the machine reach without copies.
  bool allocated() const { return state().allocated != 0; }
  const void* data() const { return state().memory; }
  std::uint64_t bytes() const { return state().bytes; }

  /// Forgets the memory, as the destructor does. Of a closed registration nothing is known: that throws Error.
  void close() noexcept { handle_.reset(); }
  bool closed() const noexcept { return handle_ == nullptr; }
  unisono_registration* handle() const noexcept { return handle_.get(); }

 private:
  friend class Context;

  Registration(unisono_context* context, const void* memory, std::uint64_t bytes) {
    unisono_registration* handle = nullptr;
    detail::check(unisono_register(context, memory, bytes, &handle));
    handle_.reset(handle);
  }
  unisono_registration_state state() const {
    unisono_registration_state state{};
    state.struct_size = sizeof state;
    detail::check(unisono_registration_describe(handle_.get(), &state));
    return state;
  }

  struct Free {  // cannot fail, but in a child of fork, which has registered nothing
    void operator()(unisono_registration* registration) const noexcept { unisono_deregister(registration); }
  };
  std::unique_ptr<unisono_registration, Free> handle_;
};

/// One endpoint of a job. Leaves the job when destroyed; calls still in flight are cancelled.
class Context {
 public:
  /// Joins the job that the environment describes (`unisono run`), or makes one of a single rank.
  explicit Context(const Settings& settings = {}) {
    const unisono_settings given = plain(settings);
    detail::check(unisono_init(&given, &handle_));
  }
  /// Joins a job of threads as `rank`. Collective over the job.
  Context(const ThreadJob& job, std::uint32_t rank, const Settings& settings = {}) {
    const unisono_settings given = plain(settings);
    detail::check(unisono_thread_context(job.handle(), rank, &given, &handle_));
  }
  Context(Context&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Context& operator=(Context&&) = delete;
  /// Leaves as `finalize` does; that ranks have called differently is then written to standard error. While an
  /// exception passes, nothing is compared.
  ~Context() {
    if (handle_ == nullptr) return;
    const bool fails = std::uncaught_exceptions() != 0;
    const std::string_view result = unisono_result_name(fails ? unisono_abandon(handle_) : unisono_finalize(handle_));
    if (result == "mismatched_call") std::fprintf(stderr, "unisono: error: %s\n", unisono_last_error());
  }
  /// Leaves the job. Throws Error, having left: mismatched_call if the ranks are found to have made different
  /// collective calls, which the last one to leave finds. The context can only be destroyed afterwards.
  void finalize() { detail::check(unisono_finalize(std::exchange(handle_, nullptr))); }

  /// The communicator of all ranks; valid while the context lives.
  Communicator world() const {
    unisono_communicator* world = nullptr;
    detail::check(unisono_world(handle_, &world));
    return Communicator(world, false);
  }
  /// Allocated memory for `size` elements, zero at first, freed with the buffer. Large calls whose buffers are all
  /// allocated, on all ranks, copy nothing through buffers in between (docs/buffers.md).
  template <Transferable T>
  Buffer<T> allocate(std::size_t size) const {
    return Buffer<T>(handle_, size);
  }
  /// Finds out once how memory can be reached, for as long as the registration lives; it may outlive the context. Not a
  /// temporary: the memory is the caller's. Registrations may overlap.
  Registration register_memory(const void* memory, std::uint64_t bytes) const { return {handle_, memory, bytes}; }
  /// The same of an array, a vector, a Buffer, or a part of one.
  template <class Range>
  requires std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
      (std::ranges::borrowed_range<Range> || std::is_lvalue_reference_v<Range>)Registration
      register_memory(Range&& range) const {
    return {handle_, std::ranges::data(range), std::ranges::size(range) * sizeof(*std::ranges::data(range))};
  }
  /// What a kernel does at a stream port: gives all of a range's elements to calls with Stream in place of src, and
  /// fills a range with those of calls with Stream in place of dst. They wait, and make progress on all calls, as
  /// unisono_stream_write and unisono_stream_read do, which take parts as well.
  template <class Range>
  requires std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range>
  void write_stream(std::uint32_t port, const Range& elements) const {
    std::uint64_t done = 0;
    detail::check(unisono_stream_write(handle_, port, std::ranges::data(elements),
                                       std::ranges::size(elements) * sizeof(*std::ranges::data(elements)),
                                       UNISONO_WHOLE, &done));
  }
  template <class Range>
  requires std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range>
  void read_stream(std::uint32_t port, Range&& elements) const {
    std::uint64_t done = 0;
    detail::check(unisono_stream_read(handle_, port, std::ranges::data(elements),
                                      std::ranges::size(elements) * sizeof(*std::ranges::data(elements)), UNISONO_WHOLE,
                                      &done));
  }

  /// What the ranks of the job are doing, and who waits for whom; with `history`, their last calls as well. Not
  /// collective.
  std::string dump(bool history = false) const {
    const char* text = nullptr;
    detail::check(unisono_dump(handle_, history ? UNISONO_DUMP_HISTORY : UNISONO_DUMP_NOW, &text));
    return text;
  }
  /// Settings with which this rank's next communicator would be made (docs/housekeeping.md).
  Settings settings() const {
    unisono_settings now{};
    now.struct_size = sizeof now;
    detail::check(unisono_settings_now(handle_, &now));
    return {now.eager_limit,
            now.segment_bytes,
            now.rx_buffer_count,
            now.timeout_seconds,
            now.without_lanes<0, now.offload> 0,
            static_cast<Determinism>(now.determinism),
            now.algorithms,
            static_cast<Deadlines>(now.deadlines)};
  }
  /// Changes them, all of them: begin with `settings()`. They act on communicators that are made from then on.
  void configure(const Settings& settings) {
    unisono_settings given = plain(settings);
    given.without_lanes = settings.lanes ? -1 : 1;
    given.offload = settings.offload ? 1 : -1;
    detail::check(unisono_configure(handle_, &given));
  }
  /// Gives up all communicators and makes the world anew, with the settings of now; collective over the job, also after
  /// errors. See unisono_reset.
  void reset() { detail::check(unisono_reset(handle_)); }
  /// Makes progress on all calls in flight, and returns at once. From any thread.
  void progress() { detail::check(unisono_progress(handle_)); }
  /// A file descriptor for event loops that is readable when there may be progress to make, once armed: see
  /// unisono_descriptor.
  int descriptor() const {
    int result = -1;
    detail::check(unisono_descriptor(handle_, &result));
    return result;
  }
  /// Makes progress and arms the descriptor. True: there was something to do, so look at requests and arm again before
  /// you sleep.
  bool arm() const {
    int ready = 0;
    detail::check(unisono_arm(handle_, &ready));
    return ready != 0;
  }
  /// Ends all calls of this rank, from any thread and without waiting for anybody; see unisono_abort.
  void abort(const std::string& reason = {}) {
    detail::check(unisono_abort(handle_, reason.empty() ? nullptr : reason.c_str()));
  }
  unisono_context* handle() const noexcept { return handle_; }

 private:
  static unisono_settings plain(const Settings& settings) {
    unisono_settings given{};
    given.struct_size = sizeof given;
    given.eager_limit = settings.eager_limit;
    given.segment_bytes = settings.segment_bytes;
    given.rx_buffer_count = settings.rx_buffer_count;
    given.timeout_seconds = settings.timeout_seconds;
    given.without_lanes = settings.lanes ? 0 : 1;
    given.offload = settings.offload ? 1 : 0;
    given.determinism = static_cast<int>(settings.determinism);
    given.algorithms = settings.algorithms ? settings.algorithms->c_str() : nullptr;
    given.deadlines = static_cast<int>(settings.deadlines);
    return given;
  }
  unisono_context* handle_ = nullptr;
};

}  // namespace api
}  // namespace unisono

#endif
