// Generated from spec/ by `python -m spec.generator`. Do not edit.
// The calls of a communicator, of which Communicator is made. Part of unisono.hpp, which includes it.
#ifndef UNISONO_GENERATED_COLLECTIVES_HPP
#define UNISONO_GENERATED_COLLECTIVES_HPP

namespace unisono {
inline namespace api {
namespace detail {

/// Calls that engines know by name. Every one has an `_async` form, which returns a Request.
class Calls : public Caller {
 public:
  /// Dst = src, on this rank, by the engine.
  template <Destination D, SourceFor<D> S>
  void copy(const S& src, D&& dst, const Options& options = {}) const {
    Prepared call(UNISONO_COPY, options);
    call.src(src).dst(dst).count(length(src));
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request copy_async(const S& src, D&& dst, const Options& options = {}) const {
    Prepared call(UNISONO_COPY, options);
    call.src(src).dst(dst).count(length(src));
    return start(call);
  }

  /// Dst = op(src, dst), on this rank, by the engine.
  template <Destination D, SourceFor<D> S>
  void combine(const S& src, D&& dst, Op op, const Options& options = {}) const {
    Prepared call(UNISONO_COMBINE, options);
    call.src(src).dst(dst).op(op).count(length(src));
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request combine_async(const S& src, D&& dst, Op op, const Options& options = {}) const {
    Prepared call(UNISONO_COMBINE, options);
    call.src(src).dst(dst).op(op).count(length(src));
    return start(call);
  }

  /// Sends src to `peer`. Returns when src may be reused.
  template <Source S>
  void send(const S& src, std::uint32_t peer, std::int64_t tag = 0, const Options& options = {}) const {
    Prepared call(UNISONO_SEND, options);
    call.src(src).root(peer).tag(tag).count(length(src));
    run(call);
  }
  template <Source S>
  Request send_async(const S& src, std::uint32_t peer, std::int64_t tag = 0, const Options& options = {}) const {
    Prepared call(UNISONO_SEND, options);
    call.src(src).root(peer).tag(tag).count(length(src));
    return start(call);
  }

  /// Writes src into the window of `peer`, `offset` bytes from its begin. Returns when it is written.
  template <Source S>
  void put(const S& src, std::uint32_t peer, std::uint64_t offset, const Options& options = {}) const {
    Prepared call(UNISONO_PUT, options);
    call.src(src).root(peer).window_offset(offset).count(length(src));
    run(call);
  }
  template <Source S>
  Request put_async(const S& src, std::uint32_t peer, std::uint64_t offset, const Options& options = {}) const {
    Prepared call(UNISONO_PUT, options);
    call.src(src).root(peer).window_offset(offset).count(length(src));
    return start(call);
  }

  /// Reads dst's length from the window of `peer`, from byte `offset` on.
  template <Destination D>
  void get(D&& dst, std::uint32_t peer, std::uint64_t offset, const Options& options = {}) const {
    Prepared call(UNISONO_GET, options);
    call.dst(dst).root(peer).window_offset(offset).count(length(dst));
    run(call);
  }
  template <Destination D>
  Request get_async(D&& dst, std::uint32_t peer, std::uint64_t offset, const Options& options = {}) const {
    Prepared call(UNISONO_GET, options);
    call.dst(dst).root(peer).window_offset(offset).count(length(dst));
    return start(call);
  }

  /// The root's buffer to every rank's buffer; all have the same number of elements.
  template <Destination D>
  void bcast(D&& buffer, std::uint32_t root, const Options& options = {}) const {
    Prepared call(UNISONO_BCAST, options);
    call.dst(buffer).root(root).count(length(buffer));
    run(call);
  }
  template <Destination D>
  Request bcast_async(D&& buffer, std::uint32_t root, const Options& options = {}) const {
    Prepared call(UNISONO_BCAST, options);
    call.dst(buffer).root(root).count(length(buffer));
    return start(call);
  }

  /// `op` over all ranks' src, into the root's dst. All have the same number of elements. Elsewhere dst may be empty.
  template <Destination D, SourceFor<D> S>
  void reduce(const S& src, D&& dst, Op op, std::uint32_t root, const Options& options = {}) const {
    Prepared call(UNISONO_REDUCE, options);
    call.src(src).dst(dst).op(op).root(root).count(length(src));
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request reduce_async(const S& src, D&& dst, Op op, std::uint32_t root, const Options& options = {}) const {
    Prepared call(UNISONO_REDUCE, options);
    call.src(src).dst(dst).op(op).root(root).count(length(src));
    return start(call);
  }

  /// As reduce, in place: buffer is the root's dst, in which its input stands, and the others' src. They may call
  /// reduce as well.
  template <Destination D>
  void reduce_in_place(D&& buffer, Op op, std::uint32_t root, const Options& options = {}) const {
    Prepared call = rooted(UNISONO_REDUCE, true, buffer, root, options);
    call.op(op).count(length(buffer));
    run(call);
  }
  template <Destination D>
  Request reduce_in_place_async(D&& buffer, Op op, std::uint32_t root, const Options& options = {}) const {
    Prepared call = rooted(UNISONO_REDUCE, true, buffer, root, options);
    call.op(op).count(length(buffer));
    return start(call);
  }

  /// `op` over all ranks' src, into every rank's dst. All have the same number of elements. src may be kInPlace.
  template <Destination D, SourceFor<D> S>
  void allreduce(const S& src, D&& dst, Op op, const Options& options = {}) const {
    Prepared call(UNISONO_ALLREDUCE, options);
    call.src(src).dst(dst).op(op).count(in_place(src) ? length(dst) : length(src));
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request allreduce_async(const S& src, D&& dst, Op op, const Options& options = {}) const {
    Prepared call(UNISONO_ALLREDUCE, options);
    call.src(src).dst(dst).op(op).count(in_place(src) ? length(dst) : length(src));
    return start(call);
  }

  /// `op` over all ranks' src, which has size() blocks of n; block r into rank r's dst (n). In place, dst has size()
  /// blocks and receives the result at its begin. src may be kInPlace.
  template <Destination D, SourceFor<D> S>
  void reduce_scatter(const S& src, D&& dst, Op op, const Options& options = {}) const {
    Prepared call(UNISONO_REDUCE_SCATTER, options);
    call.src(src).dst(dst).op(op).count(in_place(src) ? length(dst) / size() : length(dst));
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request reduce_scatter_async(const S& src, D&& dst, Op op, const Options& options = {}) const {
    Prepared call(UNISONO_REDUCE_SCATTER, options);
    call.src(src).dst(dst).op(op).count(in_place(src) ? length(dst) / size() : length(dst));
    return start(call);
  }

  /// Every rank's src (n) into every rank's dst (size() * n), by rank. In place, the input is block `rank` of dst. src
  /// may be kInPlace.
  template <Destination D, SourceFor<D> S>
  void allgather(const S& src, D&& dst, const Options& options = {}) const {
    Prepared call(UNISONO_ALLGATHER, options);
    call.src(src).dst(dst).count(in_place(src) ? length(dst) / size() : length(src));
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request allgather_async(const S& src, D&& dst, const Options& options = {}) const {
    Prepared call(UNISONO_ALLGATHER, options);
    call.src(src).dst(dst).count(in_place(src) ? length(dst) / size() : length(src));
    return start(call);
  }

  /// Every rank's src (n) into the root's dst (size() * n), by rank. In place, the root's input is its own block of
  /// dst. Elsewhere dst may be empty.
  template <Destination D, SourceFor<D> S>
  void gather(const S& src, D&& dst, std::uint32_t root, const Options& options = {}) const {
    Prepared call(UNISONO_GATHER, options);
    call.src(src).dst(dst).root(root).count(length(src));
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request gather_async(const S& src, D&& dst, std::uint32_t root, const Options& options = {}) const {
    Prepared call(UNISONO_GATHER, options);
    call.src(src).dst(dst).root(root).count(length(src));
    return start(call);
  }

  /// As gather, in place: buffer is the root's dst, in which its input stands, and the others' src. They may call
  /// gather as well.
  template <Destination D>
  void gather_in_place(D&& buffer, std::uint32_t root, const Options& options = {}) const {
    Prepared call = rooted(UNISONO_GATHER, true, buffer, root, options);
    call.count(rank() == root ? length(buffer) / size() : length(buffer));
    run(call);
  }
  template <Destination D>
  Request gather_in_place_async(D&& buffer, std::uint32_t root, const Options& options = {}) const {
    Prepared call = rooted(UNISONO_GATHER, true, buffer, root, options);
    call.count(rank() == root ? length(buffer) / size() : length(buffer));
    return start(call);
  }

  /// Block r of the root's src (size() * n) into rank r's dst (n). In place, the root's block stays where it is.
  /// Elsewhere src may be empty.
  template <Destination D, SourceFor<D> S>
  void scatter(const S& src, D&& dst, std::uint32_t root, const Options& options = {}) const {
    Prepared call(UNISONO_SCATTER, options);
    call.src(src).dst(dst).root(root).count(length(dst));
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request scatter_async(const S& src, D&& dst, std::uint32_t root, const Options& options = {}) const {
    Prepared call(UNISONO_SCATTER, options);
    call.src(src).dst(dst).root(root).count(length(dst));
    return start(call);
  }

  /// As scatter, in place: buffer is the root's src, in which its block stays, and the others' dst. They may call
  /// scatter as well.
  template <Destination D>
  void scatter_in_place(D&& buffer, std::uint32_t root, const Options& options = {}) const {
    Prepared call = rooted(UNISONO_SCATTER, false, buffer, root, options);
    call.count(rank() == root ? length(buffer) / size() : length(buffer));
    run(call);
  }
  template <Destination D>
  Request scatter_in_place_async(D&& buffer, std::uint32_t root, const Options& options = {}) const {
    Prepared call = rooted(UNISONO_SCATTER, false, buffer, root, options);
    call.count(rank() == root ? length(buffer) / size() : length(buffer));
    return start(call);
  }

  /// Gathers counts[r] elements of rank r to displacements[r] of the root's dst. The root gives all counts; the others
  /// may leave them out. Displacements matter on the root. In place, the root's input is its own block of dst.
  /// Elsewhere dst may be empty. So may layout: the length of src is that rank's count then.
  template <Destination D, SourceFor<D> S>
  void gatherv(const S& src, D&& dst, const Layout& layout, std::uint32_t root, const Options& options = {}) const {
    Prepared call(UNISONO_GATHERV, options);
    call.src(src).dst(dst).root(root).receives(layout, size(), rank() == root, length(src));
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request gatherv_async(const S& src, D&& dst, const Layout& layout, std::uint32_t root,
                        const Options& options = {}) const {
    Prepared call(UNISONO_GATHERV, options);
    call.src(src).dst(dst).root(root).receives(layout, size(), rank() == root, length(src));
    return start(call);
  }

  /// As gatherv, in place: buffer is the root's dst, in which its input stands, and the others' src. They may call
  /// gatherv as well.
  template <Destination D>
  void gatherv_in_place(D&& buffer, const Layout& layout, std::uint32_t root, const Options& options = {}) const {
    Prepared call = rooted(UNISONO_GATHERV, true, buffer, root, options);
    call.receives(layout, size(), rank() == root, length(buffer));
    run(call);
  }
  template <Destination D>
  Request gatherv_in_place_async(D&& buffer, const Layout& layout, std::uint32_t root,
                                 const Options& options = {}) const {
    Prepared call = rooted(UNISONO_GATHERV, true, buffer, root, options);
    call.receives(layout, size(), rank() == root, length(buffer));
    return start(call);
  }

  /// Scatters counts[r] elements from displacements[r] of the root's src to rank r. The root gives all counts; the
  /// others may leave them out. Displacements matter on the root. In place, the root's block stays where it is.
  /// Elsewhere src may be empty. So may layout: the length of dst is that rank's count then.
  template <Destination D, SourceFor<D> S>
  void scatterv(const S& src, D&& dst, const Layout& layout, std::uint32_t root, const Options& options = {}) const {
    Prepared call(UNISONO_SCATTERV, options);
    call.src(src).dst(dst).root(root).sends(layout, size(), rank() == root, length(dst));
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request scatterv_async(const S& src, D&& dst, const Layout& layout, std::uint32_t root,
                         const Options& options = {}) const {
    Prepared call(UNISONO_SCATTERV, options);
    call.src(src).dst(dst).root(root).sends(layout, size(), rank() == root, length(dst));
    return start(call);
  }

  /// As scatterv, in place: buffer is the root's src, in which its block stays, and the others' dst. They may call
  /// scatterv as well.
  template <Destination D>
  void scatterv_in_place(D&& buffer, const Layout& layout, std::uint32_t root, const Options& options = {}) const {
    Prepared call = rooted(UNISONO_SCATTERV, false, buffer, root, options);
    call.sends(layout, size(), rank() == root, length(buffer));
    run(call);
  }
  template <Destination D>
  Request scatterv_in_place_async(D&& buffer, const Layout& layout, std::uint32_t root,
                                  const Options& options = {}) const {
    Prepared call = rooted(UNISONO_SCATTERV, false, buffer, root, options);
    call.sends(layout, size(), rank() == root, length(buffer));
    return start(call);
  }

  /// As `gatherv`, into every rank's dst. src may be kInPlace.
  template <Destination D, SourceFor<D> S>
  void allgatherv(const S& src, D&& dst, const Layout& layout, const Options& options = {}) const {
    Prepared call(UNISONO_ALLGATHERV, options);
    call.src(src).dst(dst).receives(layout, size());
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request allgatherv_async(const S& src, D&& dst, const Layout& layout, const Options& options = {}) const {
    Prepared call(UNISONO_ALLGATHERV, options);
    call.src(src).dst(dst).receives(layout, size());
    return start(call);
  }

  /// Block j of rank i's src into block i of rank j's dst; both have size() blocks. src may be kInPlace.
  template <Destination D, SourceFor<D> S>
  void alltoall(const S& src, D&& dst, const Options& options = {}) const {
    Prepared call(UNISONO_ALLTOALL, options);
    call.src(src).dst(dst).count(in_place(src) ? length(dst) / size() : length(src) / size());
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request alltoall_async(const S& src, D&& dst, const Options& options = {}) const {
    Prepared call(UNISONO_ALLTOALL, options);
    call.src(src).dst(dst).count(in_place(src) ? length(dst) / size() : length(src) / size());
    return start(call);
  }

  /// Sends send_counts[j] elements to rank j and receives recv_counts[i] from rank i. In place, what a pair exchanges
  /// has one size, given for what is received. The ranks then first agree on their largest block, so that even the
  /// start waits for all of them, unless every rank gives the same bound of all blocks as count. src may be kInPlace.
  template <Destination D, SourceFor<D> S>
  void alltoallv(const S& src, D&& dst, const Layout& sends, const Layout& receives,
                 const Options& options = {}) const {
    Prepared call(UNISONO_ALLTOALLV, options);
    call.src(src).dst(dst).receives(receives, size());
    if (!in_place(src)) call.sends(sends, size());
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request alltoallv_async(const S& src, D&& dst, const Layout& sends, const Layout& receives,
                          const Options& options = {}) const {
    Prepared call(UNISONO_ALLTOALLV, options);
    call.src(src).dst(dst).receives(receives, size());
    if (!in_place(src)) call.sends(sends, size());
    return start(call);
  }

  /// `op` over src of ranks 0 .. rank, into dst. src may be kInPlace.
  template <Destination D, SourceFor<D> S>
  void scan(const S& src, D&& dst, Op op, const Options& options = {}) const {
    Prepared call(UNISONO_SCAN, options);
    call.src(src).dst(dst).op(op).count(in_place(src) ? length(dst) : length(src));
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request scan_async(const S& src, D&& dst, Op op, const Options& options = {}) const {
    Prepared call(UNISONO_SCAN, options);
    call.src(src).dst(dst).op(op).count(in_place(src) ? length(dst) : length(src));
    return start(call);
  }

  /// `op` over src of ranks 0 .. rank-1, into dst; rank 0's dst stays as it is. src may be kInPlace.
  template <Destination D, SourceFor<D> S>
  void exscan(const S& src, D&& dst, Op op, const Options& options = {}) const {
    Prepared call(UNISONO_EXSCAN, options);
    call.src(src).dst(dst).op(op).count(in_place(src) ? length(dst) : length(src));
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request exscan_async(const S& src, D&& dst, Op op, const Options& options = {}) const {
    Prepared call(UNISONO_EXSCAN, options);
    call.src(src).dst(dst).op(op).count(in_place(src) ? length(dst) : length(src));
    return start(call);
  }

  /// No rank returns before every rank has called.
  void barrier(const Options& options = {}) const {
    Prepared call(UNISONO_BARRIER, options);
    run(call);
  }
  Request barrier_async(const Options& options = {}) const {
    Prepared call(UNISONO_BARRIER, options);
    return start(call);
  }

  /// `op` over all ranks' src; the counts[r] elements at displacements[r] into rank r's dst. Every rank gives all
  /// counts. In place, dst has all blocks and receives the result at its begin. src may be kInPlace.
  template <Destination D, SourceFor<D> S>
  void reduce_scatterv(const S& src, D&& dst, const Layout& layout, Op op, const Options& options = {}) const {
    Prepared call(UNISONO_REDUCE_SCATTERV, options);
    call.src(src).dst(dst).op(op).receives(layout, size());
    run(call);
  }
  template <Destination D, SourceFor<D> S>
  Request reduce_scatterv_async(const S& src, D&& dst, const Layout& layout, Op op, const Options& options = {}) const {
    Prepared call(UNISONO_REDUCE_SCATTERV, options);
    call.src(src).dst(dst).op(op).receives(layout, size());
    return start(call);
  }

 protected:
  Calls() = default;
  using Caller::Caller;
};

}  // namespace detail
}  // namespace api
}  // namespace unisono

#endif
