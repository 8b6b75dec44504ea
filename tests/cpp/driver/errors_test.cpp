// What the interfaces refuse: code and sentence, before anything is sent, and the communicator as good as before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/program_file.hpp"
#include "ranks.hpp"

namespace unisono::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

int code_of(ErrorCode code) { return static_cast<int>(code); }

// A signal may come when the thread has just asked and is about to sleep: then nothing wakes it, so it asks again.
TEST(Interrupts, AreSeenByAThreadThatSleeps) {
  for (const bool collective : {false, true}) {
    const ThreadJob job(2);
    std::promise<void> done;
    std::thread other([&] {
      const Context silent(job, 1);
      done.get_future().wait();
    });
    Context context(job, 0);
    Communicator world = context.world();
    int asked = 0;
    unisono_set_interrupt([](void* times) { return static_cast<int>(++*static_cast<int*>(times) > 1); }, &asked);
    float values[4] = {};
    unisono_call call{};
    call.struct_size = sizeof call;
    call.collective = collective ? UNISONO_BCAST : UNISONO_RECV;
    call.root = 1;
    call.datatype = UNISONO_FP32;
    call.count = 4;
    call.dst = values;
    call.dst_bytes = sizeof values;
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_NE(unisono_run(world.handle(), &call), 0);
    unisono_set_interrupt(nullptr, nullptr);
    EXPECT_THAT(std::string(unisono_last_error()), HasSubstr("interrupted"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << "it ended by its deadline";
    EXPECT_GT(asked, 1);
    done.set_value();
    other.join();
  }
}

// A rank that is asked holds no lock of the library, in agreements as in other calls.
TEST(Interrupts, MayUseTheLibrary) {
  struct Asked {
    unisono_communicator* world;
    int times;
  };
  for (const std::string call : {"barrier", "agree", "split", "window"}) {
    SCOPED_TRACE(call);
    const ThreadJob job(2);
    std::promise<void> done;
    std::thread other([&] {
      const Context silent(job, 1);
      done.get_future().wait();
    });
    Context context(job, 0);
    Communicator world = context.world();
    Asked asked{world.handle(), 0};
    unisono_set_interrupt(
        [](void* given) {
          Asked& mine = *static_cast<Asked*>(given);
          std::size_t gone = 0;
          EXPECT_EQ(unisono_failed(mine.world, nullptr, 0, &gone), 0) << unisono_last_error();
          return static_cast<int>(++mine.times > 1);
        },
        &asked);
    unisono_result result = 0;
    if (call == "barrier") {
      unisono_call barrier{};
      barrier.struct_size = sizeof barrier;
      barrier.collective = UNISONO_BARRIER;
      result = unisono_run(world.handle(), &barrier);
    } else if (call == "agree") {
      std::uint64_t value = 1;
      result = unisono_agree(world.handle(), &value);
    } else if (call == "split") {
      unisono_communicator* part = nullptr;
      result = unisono_split(world.handle(), 0, 0, 0, &part);
    } else {
      result = unisono_window(world.handle(), &asked, sizeof asked);
    }
    EXPECT_EQ(result, code_of(ErrorCode::kRevoked)) << unisono_last_error();
    unisono_set_interrupt(nullptr, nullptr);
    EXPECT_EQ(asked.times, 2);
    done.set_value();
    other.join();
  }
}

TEST(LastError, IsThatOfItsThread) {
  EXPECT_EQ(unisono_wait(nullptr), code_of(ErrorCode::kInvalidArgument));
  const std::string mine = unisono_last_error();
  std::thread([&] {
    EXPECT_STREQ(unisono_last_error(), "");
    EXPECT_NE(unisono_world(nullptr, nullptr), 0);
    EXPECT_NE(std::string(unisono_last_error()), mine);
  }).join();
  EXPECT_EQ(std::string(unisono_last_error()), mine);
}

struct Joined {
  Joined() : job(1), context(job, 0), world(context.world()) {}
  ThreadJob job;
  Context context;
  Communicator world;
};

class Refusals : public testing::Test {
 protected:
  Refusals() {
    call.struct_size = sizeof call;
    call.collective = UNISONO_ALLREDUCE;
    call.datatype = UNISONO_FP32;
    call.op = UNISONO_SUM;
    call.count = 4;
    call.src = src;
    call.src_bytes = sizeof src;
    call.dst = dst;
    call.dst_bytes = sizeof dst;
  }
  ~Refusals() override {
    // Nothing that was refused has done harm.
    dst[0] = 0;
    EXPECT_EQ(unisono_run(joined.world.handle(), &right), 0) << unisono_last_error();
    EXPECT_EQ(dst[0], 7);
  }
  void refuses(ErrorCode code, const testing::Matcher<std::string>& sentence) {
    EXPECT_EQ(unisono_run(joined.world.handle(), &call), code_of(code));
    EXPECT_THAT(std::string(unisono_last_error()), sentence);
  }

  Joined joined;
  float src[4] = {7, 8, 9, 10};
  float dst[4] = {};
  unisono_call call{};
  unisono_call right = [this] {
    unisono_call c{};
    c.struct_size = sizeof c;
    c.collective = UNISONO_ALLREDUCE;
    c.datatype = UNISONO_FP32;
    c.op = UNISONO_SUM;
    c.count = 4;
    c.src = src;
    c.src_bytes = sizeof src;
    c.dst = dst;
    c.dst_bytes = sizeof dst;
    return c;
  }();
};

TEST_F(Refusals, Counts) {
  call.count = -1;
  refuses(ErrorCode::kInvalidCount, AllOf(HasSubstr("count -1"), HasSubstr("0 to")));
  call.count = std::numeric_limits<std::int64_t>::max();
  refuses(ErrorCode::kInvalidCount, HasSubstr("too large"));
  call.count = 5;
  refuses(ErrorCode::kBufferTooSmall, AllOf(HasSubstr("src holds 4 elements"), HasSubstr("needs 5")));
}

TEST_F(Refusals, Enumerations) {
  call.datatype = 55;
  refuses(ErrorCode::kInvalidDatatype, AllOf(HasSubstr("datatype 55"), HasSubstr("fp32")));
  call.datatype = UNISONO_BYTE;
  refuses(ErrorCode::kInvalidDatatype,
          AllOf(HasSubstr("op sum is not defined on datatype byte"), HasSubstr("on byte are bitwise_and")));
  call.datatype = UNISONO_FP32;
  call.op = UNISONO_MINLOC;
  refuses(ErrorCode::kInvalidDatatype, AllOf(HasSubstr("it is on fp32_int32"), HasSubstr("on fp32 are sum, prod")));
  call = right;
  call.op = 99;
  refuses(ErrorCode::kInvalidOp, AllOf(HasSubstr("op 99"), HasSubstr("sum")));
  call.op = 0;
  refuses(ErrorCode::kInvalidOp, HasSubstr("no op was given"));
  call = right;
  call.collective = 23;
  refuses(ErrorCode::kInvalidArgument, AllOf(HasSubstr("collective 23"), HasSubstr("allreduce")));
  call.collective = UNISONO_BCAST;
  refuses(ErrorCode::kInvalidOp, HasSubstr("nothing is reduced"));
}

TEST_F(Refusals, Algorithms) {
  call.algorithm = "rnig";
  refuses(ErrorCode::kUnknownAlgorithm, AllOf(HasSubstr("\"rnig\""), HasSubstr("ring")));
}

TEST_F(Refusals, RootsTagsAndTimes) {
  call.collective = UNISONO_REDUCE;
  call.root = 1;
  refuses(ErrorCode::kInvalidRoot, AllOf(HasSubstr("root 1"), HasSubstr("0 to 0")));
  call.root = -1;
  refuses(ErrorCode::kInvalidRoot, HasSubstr("root -1"));
  call = right;
  call.tag = -1;
  refuses(ErrorCode::kInvalidArgument, HasSubstr("tag -1"));
  call = right;
  call.timeout_seconds = std::numeric_limits<double>::quiet_NaN();
  refuses(ErrorCode::kInvalidArgument, HasSubstr("timeout is nan"));
  call.timeout_seconds = -std::numeric_limits<double>::quiet_NaN();
  refuses(ErrorCode::kInvalidArgument, HasSubstr("timeout is nan"));
  call.timeout_seconds = 1e300;
  refuses(ErrorCode::kInvalidArgument, HasSubstr("timeout is 1e+300 s; allowed are 0 (default) to 10 years"));
  call.timeout_seconds = std::numeric_limits<double>::infinity();
  refuses(ErrorCode::kInvalidArgument, AllOf(HasSubstr("timeout is inf"), HasSubstr("10 years")));
}

TEST_F(Refusals, Buffers) {
  call.src = nullptr;
  refuses(ErrorCode::kInvalidArgument, HasSubstr("src is null"));
  call.src = dst + 1;
  call.src_bytes = 12;
  call.count = 3;
  refuses(ErrorCode::kOverlappingBuffers, HasSubstr("overlap"));
  call = right;
  call.dst_bytes = 15;
  refuses(ErrorCode::kBufferTooSmall, AllOf(HasSubstr("dst holds 3 elements (15 bytes)"), HasSubstr("16 bytes")));
}

TEST_F(Refusals, Radices) {
  call.algorithm = "ring:2";
  refuses(ErrorCode::kInvalidArgument, HasSubstr("the algorithm \"ring\" has no radix; \":2\" was given"));
  for (const char* radix : {"", "0", "1", "256", "4294967298", "x", "2x", "-2", " 2"}) {
    const std::string name = std::string("knomial:") + radix;
    call.algorithm = name.c_str();
    refuses(ErrorCode::kInvalidArgument, HasSubstr(std::string("the radix of the algorithm \"knomial\" is \"") + radix +
                                                   "\"; allowed are 2 to 255"));
  }
  call.algorithm = "binary:2";
  refuses(ErrorCode::kUnknownAlgorithm, HasSubstr("there is no algorithm \"binary\""));
}

TEST_F(Refusals, VectorCounts) {
  const std::int64_t negative[] = {-2};
  call = unisono_call{};
  call.struct_size = sizeof call;
  call.collective = UNISONO_ALLGATHERV;
  call.datatype = UNISONO_FP32;
  refuses(ErrorCode::kInvalidArgument, HasSubstr("recv_counts is null"));
  call.recv_counts = negative;
  refuses(ErrorCode::kInvalidCount, HasSubstr("recv_counts[0] is -2"));
}

TEST_F(Refusals, Factors) {
  const double two = 2;
  call.pre_scale = &two;
  call.datatype = UNISONO_INT32;
  refuses(ErrorCode::kInvalidDatatype, HasSubstr("allreduce: pre_scale was given for elements of int32; factors are"));
  call.pre_scale = nullptr;
  call.post_scale = &two;
  refuses(ErrorCode::kInvalidDatatype, HasSubstr("post_scale was given for elements of int32"));
  for (const unisono_collective collective : {UNISONO_BCAST, UNISONO_ALLGATHER, UNISONO_COPY, UNISONO_BARRIER}) {
    call = right;
    call.collective = collective;
    call.op = 0;
    call.post_scale = &two;
    refuses(ErrorCode::kUnsupported, HasSubstr("post_scale was given, but no ranks' elements are folded"));
  }
  call = right;
  call.pre_scale = &two;
  call.src = nullptr;
  call.src_bytes = 0;
  call.streams = UNISONO_SRC_STREAM;
  refuses(ErrorCode::kUnsupported, HasSubstr("src or dst is a stream port, and pre_scale was given"));
  call = right;
  call.pre_scale = call.post_scale = &two;
  ASSERT_EQ(unisono_run(joined.world.handle(), &call), 0) << unisono_last_error();
  EXPECT_THAT(dst, testing::ElementsAre(28, 32, 36, 40));
  EXPECT_THAT(src, testing::ElementsAre(7, 8, 9, 10));
}

TEST_F(Refusals, VersionsOfTheStruct) {
  // What lies behind that of an older program is not looked at.
  const double two = 2;
  for (const std::size_t size :
       {offsetof(unisono_call, element_bytes), offsetof(unisono_call, streams), offsetof(unisono_call, pre_scale)}) {
    unisono_call older = right;
    older.struct_size = size;
    older.pre_scale = older.post_scale = &two;
    ASSERT_EQ(unisono_run(joined.world.handle(), &older), 0) << unisono_last_error();
    EXPECT_THAT(dst, testing::ElementsAre(7, 8, 9, 10)) << size;
  }
  call.struct_size = 3;
  refuses(ErrorCode::kInvalidArgument, HasSubstr("struct_size is 3"));
  // Half of an address is none.
  call.struct_size = offsetof(unisono_call, recv_counts) + 4;
  refuses(ErrorCode::kInvalidArgument, HasSubstr("struct_size is " + std::to_string(call.struct_size)));
  struct {
    unisono_call known;
    std::uint64_t unknown;
  } newer{right, 1};
  newer.known.struct_size = sizeof newer;
  EXPECT_EQ(unisono_run(joined.world.handle(), &newer.known), code_of(ErrorCode::kUnsupported));
  newer.unknown = 0;
  EXPECT_EQ(unisono_run(joined.world.handle(), &newer.known), 0) << unisono_last_error();
}

TEST(Handles, MisuseIsRecognised) {
  const Joined joined;
  std::uint32_t rank = 0;
  EXPECT_EQ(unisono_communicator_rank(nullptr, &rank), code_of(ErrorCode::kInvalidArgument));
  int something = 0;
  EXPECT_EQ(unisono_communicator_rank(reinterpret_cast<unisono_communicator*>(&something), &rank),
            code_of(ErrorCode::kInvalidArgument));
  // A handle of another kind.
  EXPECT_EQ(unisono_communicator_rank(reinterpret_cast<unisono_communicator*>(joined.context.handle()), &rank),
            code_of(ErrorCode::kInvalidArgument));
  Communicator part = joined.world.split(0);
  part.free();
  EXPECT_EQ(unisono_communicator_rank(part.handle(), &rank), code_of(ErrorCode::kFreedCommunicator));
  EXPECT_THAT(std::string(unisono_last_error()), HasSubstr("was freed"));
  EXPECT_EQ(unisono_communicator_free(joined.world.handle()), code_of(ErrorCode::kInvalidArgument));
  EXPECT_EQ(unisono_wait(nullptr), code_of(ErrorCode::kInvalidArgument));
  unisono_request_free(nullptr);
}

TEST(Handles, ClosingCancelsWhatIsInFlight) {
  const ThreadJob job(1);
  unisono_context* context = nullptr;
  ASSERT_EQ(unisono_thread_context(job.handle(), 0, nullptr, &context), 0);
  unisono_communicator* world = nullptr;
  ASSERT_EQ(unisono_world(context, &world), 0);
  float value = 0;
  unisono_call call{};
  call.struct_size = sizeof call;
  call.collective = UNISONO_RECV;
  call.datatype = UNISONO_FP32;
  call.count = 1;
  call.dst = &value;
  call.dst_bytes = sizeof value;
  unisono_request* request = nullptr;
  ASSERT_EQ(unisono_start(world, &call, &request), 0) << unisono_last_error();
  ASSERT_EQ(unisono_finalize(context), 0);
  EXPECT_EQ(unisono_wait(request), code_of(ErrorCode::kWrongProcess));
  EXPECT_THAT(std::string(unisono_last_error()), HasSubstr("cancelled"));
  unisono_request_free(request);
  EXPECT_EQ(unisono_finalize(context), code_of(ErrorCode::kWrongProcess));
  EXPECT_THAT(unisono_last_error(), HasSubstr("the context was closed; create a new one"));
  EXPECT_NE(unisono_run(world, &call), 0);
  EXPECT_THAT(unisono_last_error(), HasSubstr("the context was closed, and its communicator with it"));
}

TEST(ThreadJobs, OfMoreRanksThanThereCanBeAreRefused) {
  unisono_thread_job* job = nullptr;
  for (const std::uint32_t size : {0U, 1025U, 0xffffffffU}) {
    EXPECT_EQ(unisono_thread_job_create(size, &job), static_cast<int>(ErrorCode::kInvalidArgument)) << size;
    EXPECT_NE(std::string(unisono_last_error()).find("allowed are 1 to 1024"), std::string::npos)
        << unisono_last_error();
    EXPECT_EQ(job, nullptr);
  }
}

TEST(Handles, AChildOfForkIsRefusedAndMayJoinAnew) {
  const Joined joined;
  const pid_t child = fork();
  if (child == 0) {
    std::uint32_t rank = 0;
    int failures = 0;
    failures += unisono_communicator_rank(joined.world.handle(), &rank) != code_of(ErrorCode::kWrongProcess);
    failures += unisono_finalize(joined.context.handle()) != code_of(ErrorCode::kWrongProcess);
    unisono_thread_job* own = nullptr;
    unisono_context* context = nullptr;
    failures += unisono_thread_job_create(1, &own) != 0;
    failures += unisono_thread_context(own, 0, nullptr, &context) != 0;
    failures += unisono_finalize(context) != 0;
    _exit(failures);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  joined.world.barrier();
}

std::vector<std::byte> one_copy() {
  ProgramFile file;
  Move& move = file.programs.emplace_back().moves.emplace_back();
  move.kind = MoveKind::kMove;
  move.dtype = Datatype::kFp32;
  move.count = 4;
  move.op0.kind = OperandKind::kMemory;
  move.local.kind = OperandKind::kMemory;
  move.local.region = Region::kDst;
  file.region_bytes.push_back({16, 16, 0, 0, 0});
  return write_program_file(file);
}

std::string_view view(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Programs, FilesAreReadStrictly) {
  const auto refused = [](std::string_view bytes) {
    try {
      api::Program::parse(bytes);
    } catch (const api::Error& error) {
      EXPECT_EQ(error.code(), code_of(ErrorCode::kMalformedProgram));
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::vector<std::byte> good = one_copy();
  EXPECT_EQ(api::Program::parse(view(good)).size(), 1U);
  EXPECT_THAT(refused(""), AllOf(HasSubstr("0 bytes"), HasSubstr("at least 20")));
  EXPECT_THAT(refused("unisono program 1, as text"), HasSubstr("not with the letters UPRG"));
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::vector<std::byte> bad = good;
    bad[i] ^= std::byte{4};
    EXPECT_THAT(refused(view(bad)), AllOf(HasSubstr("program file: "), HasSubstr(" "))) << i;
  }
  unisono_program* program = nullptr;
  EXPECT_EQ(unisono_program_load("no/such/file", &program), code_of(ErrorCode::kInvalidArgument));
  EXPECT_THAT(std::string(unisono_last_error()), AllOf(HasSubstr("no/such/file"), HasSubstr("cannot be read")));
  EXPECT_EQ(unisono_program_load("/", &program), code_of(ErrorCode::kInvalidArgument));
  EXPECT_THAT(std::string(unisono_last_error()), HasSubstr("the program file / cannot be read"));
  EXPECT_EQ(unisono_program_parse(nullptr, 5, &program), code_of(ErrorCode::kInvalidArgument));
  EXPECT_EQ(unisono_program_parse(good.data(), good.size(), nullptr), code_of(ErrorCode::kInvalidArgument));
}

TEST_F(Refusals, BuffersOfAProgram) {
  const api::Program program = api::Program::parse(view(one_copy()));
  call = unisono_call{};
  call.struct_size = sizeof call;
  call.collective = UNISONO_PROGRAM;
  refuses(ErrorCode::kInvalidArgument, HasSubstr("no program was given"));
  call.program = program.handle();
  refuses(ErrorCode::kBufferTooSmall, AllOf(HasSubstr("src holds 0 bytes"), HasSubstr("rank 0 needs 16 bytes")));
  call.src = src;
  call.src_bytes = sizeof src;
  call.dst = dst;
  call.dst_bytes = 15;
  refuses(ErrorCode::kBufferTooSmall, AllOf(HasSubstr("dst holds 15 bytes"), HasSubstr("needs 16 bytes")));
  call.dst_bytes = sizeof dst;
  EXPECT_EQ(unisono_run(joined.world.handle(), &call), 0) << unisono_last_error();
  EXPECT_EQ(dst[3], 10);
}

TEST(Settings, AreRefusedWithWhatIsAllowed) {
  const api::ThreadJob job(1);
  const auto refused = [&](const std::function<void(unisono_settings&)>& spoil) {
    unisono_settings settings{};
    settings.struct_size = sizeof settings;
    spoil(settings);
    unisono_context* context = nullptr;
    EXPECT_EQ(unisono_thread_context(job.handle(), 0, &settings, &context), code_of(ErrorCode::kInvalidArgument));
    return std::string(unisono_last_error());
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  EXPECT_THAT(refused([](auto& s) { s.segment_bytes = 1; }), AllOf(HasSubstr("segment_bytes is 1"), HasSubstr("64")));
  EXPECT_THAT(refused([](auto& s) { s.eager_limit = 0xffffffffU; }),
              AllOf(HasSubstr("eager_limit is 4294967295"), HasSubstr("2^30")));
  EXPECT_THAT(refused([](auto& s) { s.rx_buffer_count = 70000; }),
              AllOf(HasSubstr("rx_buffer_count is 70000"), HasSubstr("65536")));
  EXPECT_THAT(refused([](auto& s) { s.timeout_seconds = kNan; }),
              AllOf(HasSubstr("timeout_seconds is nan"), HasSubstr("10 years")));
  EXPECT_THAT(refused([](auto& s) { s.timeout_seconds = kInfinite; }),
              AllOf(HasSubstr("is inf"), HasSubstr("10 years")));
  EXPECT_THAT(refused([](auto& s) { s.timeout_seconds = -1; }), HasSubstr("is -1"));
  EXPECT_THAT(refused([](auto& s) { s.algorithms = "nothing=ring"; }), HasSubstr("nothing"));
  // The rank can still join.
  unisono_context* context = nullptr;
  ASSERT_EQ(unisono_thread_context(job.handle(), 0, nullptr, &context), 0) << unisono_last_error();
  EXPECT_EQ(unisono_thread_context(job.handle(), 0, nullptr, &context), code_of(ErrorCode::kInvalidArgument));
  EXPECT_THAT(std::string(unisono_last_error()), HasSubstr("joined already"));
}

TEST(Table, ListsAlgorithms) {
  const std::size_t entries = unisono_algorithms(0, nullptr);
  ASSERT_GT(entries, 0U);
  bool ring = false;
  for (std::size_t i = 0; i < entries; ++i) {
    unisono_algorithm_info info{};
    unisono_algorithms(i, &info);
    if (std::strcmp(info.name, "knomial") == 0) {
      EXPECT_EQ(unisono_algorithm_radix(i), 4U);
    }
    if (std::strcmp(info.name, "ring") == 0) {
      EXPECT_EQ(unisono_algorithm_radix(i), 0U);
    }
    ring = ring || (info.collective == UNISONO_ALLREDUCE && std::strcmp(info.name, "ring") == 0);
  }
  EXPECT_TRUE(ring);
  EXPECT_EQ(unisono_algorithm_radix(entries), 0U);
}

}  // namespace
}  // namespace unisono::test
