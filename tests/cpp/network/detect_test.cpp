// What launchers say in the environment, alone and against each other.
#include "platform/join/detect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "core/error.hpp"
#include "platform/join/job.hpp"

namespace unisono {
namespace {

using join::WantedStart;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Variables = std::map<std::string, std::string>;

const char* const kNames[] = {"UNISONO_RANK",
                              "UNISONO_SIZE",
                              "UNISONO_RENDEZVOUS",
                              "UNISONO_SECRET",
                              "UNISONO_START",
                              "UNISONO_JOIN",
                              "PMIX_RANK",
                              "PMIX_NAMESPACE",
                              "PMI_FD",
                              "PMI_PORT",
                              "PMI_ID",
                              "PMI_RANK",
                              "PMI_SIZE",
                              "MPI_LOCALRANKID",
                              "SLURM_PROCID",
                              "SLURM_NTASKS",
                              "SLURM_LOCALID",
                              "SLURM_JOB_ID",
                              "SLURM_STEP_ID",
                              "RANK",
                              "WORLD_SIZE",
                              "LOCAL_RANK",
                              "LOCAL_WORLD_SIZE",
                              "MASTER_ADDR",
                              "MASTER_PORT",
                              "UNISONO_PORT",
                              "TMPDIR",
                              "TORCHELASTIC_RUN_ID",
                              "TORCHELASTIC_RESTART_COUNT",
                              "UNISONO_SECRET_FILE"};

const Variables kPmix = {{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "job7"}};
const Variables kPmi = {{"PMI_FD", "7"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}};
const Variables kSlurm = {{"SLURM_PROCID", "2"},
                          {"SLURM_NTASKS", "8"},
                          {"SLURM_LOCALID", "0"},
                          {"SLURM_JOB_ID", "12"},
                          {"SLURM_STEP_ID", "3"}};
const Variables kTorchrun = {{"RANK", "1"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "node1"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"},
                             {"TORCHELASTIC_RUN_ID", "run7"}};
const Variables kSecret = {{"UNISONO_SECRET", "00ffAA9900ffAA99"}};
const Variables kFile = {{"UNISONO_JOIN", "file:///shared/job"}};
const Variables kOwn = {{"UNISONO_RANK", "1"}, {"UNISONO_SIZE", "4"}};

Variables operator+(Variables one, const Variables& other) {
  for (const auto& [name, value] : other) one[name] = value;
  return one;
}

class Set {
 public:
  explicit Set(const Variables& variables) {
    for (const char* name : kNames) unsetenv(name);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Set() {
    for (const char* name : kNames) unsetenv(name);
  }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;
};

JobEnvironment read(const Variables& variables) {
  const Set set(variables);
  return JobEnvironment::from_environment();
}

std::string refusal(const Variables& variables) {
  try {
    read(variables);
  } catch (const Error& error) {
    return error.code() == ErrorCode::kBootstrap ? error.what() : "wrong code";
  }
  return "";
}

bool loads() { return true; }
bool does_not_load() { return false; }

TEST(Launchers, AreDetected) {
  const JobEnvironment pmix = read(kPmix);
  EXPECT_EQ(pmix.launcher, Launcher::kPmix);
  EXPECT_EQ(pmix.meeting, MeetingPlace::kStore);
  EXPECT_EQ(pmix.rank, 1U);
  EXPECT_EQ(pmix.size, 0U) << "it tells when it is asked";

  const JobEnvironment pmi = read(kPmi);
  EXPECT_EQ(pmi.launcher, Launcher::kPmi);
  EXPECT_EQ(pmi.meeting, MeetingPlace::kStore);
  EXPECT_EQ(pmi.rank, 1U);
  EXPECT_EQ(pmi.size, 4U);
  EXPECT_EQ(pmi.pmi_descriptor, 7);
  EXPECT_EQ(pmi.local_rank, 1U);
  EXPECT_THAT(pmi.title(), HasSubstr("PMI-1"));

  const JobEnvironment port = read({{"PMI_PORT", "node:4711"}, {"PMI_ID", "3"}});
  EXPECT_EQ(port.rank, 3U);
  EXPECT_EQ(port.size, 0U);
  EXPECT_EQ(port.pmi_port->text(), "node:4711");
  EXPECT_EQ(read({{"PMI_PORT", "node:4711"}, {"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}).size, 4U);

  const JobEnvironment slurm = read(kSlurm + kFile);
  EXPECT_EQ(slurm.launcher, Launcher::kSlurm);
  EXPECT_EQ(slurm.meeting, MeetingPlace::kFile);
  EXPECT_EQ(slurm.file, "/shared/job");
  EXPECT_EQ(slurm.rank, 2U);
  EXPECT_EQ(slurm.size, 8U);
  EXPECT_EQ(slurm.local_rank, 0U);
}

TEST(Launchers, OfSlurmHoldOnlyIfItIsSaidWhereToMeet) {
  EXPECT_EQ(read(kSlurm).size, 1U) << "a batch script has them too";
  EXPECT_EQ(read(kSlurm + Variables{{"SLURM_NTASKS", "x"}}).size, 1U);
  const JobEnvironment forced = read(kSlurm + Variables{{"UNISONO_START", "slurm"}});
  EXPECT_EQ(forced.size, 8U);
  EXPECT_EQ(forced.meeting, MeetingPlace::kFile);
  EXPECT_THAT(forced.file, EndsWith("/unisono-12.3"));
  EXPECT_THAT(forced.file, StartsWith("/"));
  const JobEnvironment tcp =
      read(kSlurm + Variables{{"UNISONO_JOIN", "tcp://node:1"}, {"UNISONO_SECRET", "00ffAA9900ffAA99"}});
  EXPECT_EQ(tcp.meeting, MeetingPlace::kSocket);
  EXPECT_EQ(tcp.rank, 2U);
  EXPECT_EQ(tcp.addresses[0].port, 1);
  // What mpirun starts from a batch script has the script's variables.
  EXPECT_EQ(read(kSlurm + kPmi).launcher, Launcher::kPmi);
  EXPECT_EQ(read(kSlurm + kPmix + kFile).launcher, Launcher::kPmix);
}

TEST(Launchers, OfTorchrunMeetOnOneHostByAFileOfTheirUser) {
  const JobEnvironment one = read(kTorchrun);
  EXPECT_EQ(one.launcher, Launcher::kTorchrun);
  EXPECT_EQ(one.rank, 1U);
  EXPECT_EQ(one.size, 4U);
  EXPECT_EQ(one.local_rank, 1U);
  EXPECT_EQ(one.meeting, MeetingPlace::kFile);
  EXPECT_THAT(one.file, AllOf(StartsWith("/tmp/unisono-torchrun-"), EndsWith("-2")));
  EXPECT_THAT(read(kTorchrun + Variables{{"TMPDIR", "/here"}}).file, StartsWith("/here/unisono-torchrun-"));
  EXPECT_THAT(read(kTorchrun + Variables{{"TMPDIR", "here"}}).file, StartsWith("/tmp/unisono-torchrun-"));
  // Another restart, another run, another port of the same name of a run.
  for (const Variables& other : {Variables{{"TORCHELASTIC_RESTART_COUNT", "3"}},
                                 {{"TORCHELASTIC_RUN_ID", "run8"}},
                                 {{"MASTER_PORT", "29501"}}}) {
    EXPECT_NE(read(kTorchrun + other).file, one.file);
  }
  // Of a process that is started as by torchrun, if nothing says where its ranks are.
  Variables by_hand = kTorchrun;
  for (const char* name : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "LOCAL_WORLD_SIZE", "LOCAL_RANK"}) {
    by_hand.erase(name);
  }
  EXPECT_THAT(refusal(by_hand), HasSubstr("LOCAL_WORLD_SIZE is not set, WORLD_SIZE is 4"));
  for (const char* here : {"localhost", "127.0.0.1", "::1"}) {
    EXPECT_EQ(read(by_hand + Variables{{"MASTER_ADDR", here}}).meeting, MeetingPlace::kFile) << here;
  }
  EXPECT_EQ(read(kTorchrun + kFile).file, "/shared/job") << "the user says where";
  EXPECT_EQ(read(kTorchrun + Variables{{"WORLD_SIZE", "1"}, {"RANK", "0"}}).size, 1U);
}

TEST(Launchers, OfTorchrunMeetAtItsAddressWithASecret) {
  const JobEnvironment one = read(kTorchrun + kSecret);
  EXPECT_EQ(one.meeting, MeetingPlace::kSocket);
  ASSERT_EQ(one.addresses.size(), 1U);
  EXPECT_EQ(one.addresses[0].text(), "node1:30500") << "torchrun's own store has its port";
  EXPECT_EQ(read(kTorchrun + kSecret + Variables{{"MASTER_PORT", "65000"}}).addresses[0].port, 64000);
  EXPECT_EQ(read(kTorchrun + kSecret + Variables{{"UNISONO_PORT", "4711"}}).addresses[0].port, 4711);
  EXPECT_EQ(read(kTorchrun + kSecret + Variables{{"MASTER_ADDR", "fd00::1"}}).addresses[0].text(), "[fd00::1]:30500");
  // A secret that serves several runs does not let one into the other.
  EXPECT_GE(one.secret.size(), 64U);
  EXPECT_EQ(read(kTorchrun + kSecret + Variables{{"RANK", "2"}}).secret, one.secret);
  EXPECT_NE(read(kTorchrun + kSecret + Variables{{"TORCHELASTIC_RUN_ID", "run8"}}).secret, one.secret);
  EXPECT_NE(read(kTorchrun + Variables{{"UNISONO_SECRET", "00ffAA9900ffAA98"}}).secret, one.secret);

  const Variables several = kTorchrun + Variables{{"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_THAT(refusal(several),
              AllOf(HasSubstr("LOCAL_WORLD_SIZE is 2, WORLD_SIZE is 4"), HasSubstr("meet at tcp://node1:30500"),
                    HasSubstr("UNISONO_SECRET_FILE"), HasSubstr("unisono.init(store=...)")));
  EXPECT_EQ(read(several + kSecret).meeting, MeetingPlace::kSocket);
  EXPECT_THAT(refusal(kTorchrun + Variables{{"UNISONO_PORT", "4711"}}), HasSubstr("only with a secret"));
  EXPECT_THAT(refusal(several + Variables{{"UNISONO_SECRET", "short"}}), HasSubstr("UNISONO_SECRET is set to 5"));
}

TEST(Launchers, OfTorchrunHoldOnlyByItsOwnVariables) {
  EXPECT_EQ(read({{"RANK", "3"}}).size, 1U) << "others have one as well";
  EXPECT_EQ(read({{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "3"}}).size, 1U);
  EXPECT_EQ(read({{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}, {"WORLD_SIZE", "x"}}).size, 1U);
  EXPECT_EQ(read(kTorchrun + Variables{{"UNISONO_START", "none"}}).size, 1U);
  EXPECT_THAT(refusal({{"UNISONO_START", "torchrun"}, {"RANK", "3"}}),
              HasSubstr("neither TORCHELASTIC_RUN_ID is set, nor all of RANK"));
  EXPECT_EQ(read(kTorchrun + kPmix + Variables{{"PMIX_RANK", "3"}, {"UNISONO_START", "torchrun"}}).rank, 1U);
  EXPECT_EQ(read(kTorchrun + kSlurm + kFile).rank, 1U) << "torchrun may be started by srun";
  EXPECT_EQ(read(kTorchrun + kPmi).launcher, Launcher::kPmi) << "both say the same";
  const Set set(kTorchrun + kPmix);
  EXPECT_EQ(join::detect(WantedStart::kAny, false, does_not_load)->launcher, Launcher::kTorchrun);
  const auto asked = join::detect(WantedStart::kAny, false, loads);
  EXPECT_EQ(asked->launcher, Launcher::kPmix);
  EXPECT_EQ(asked->size, 4U) << "which PMIx is to confirm";
}

TEST(Launchers, GiveWayToWhatTheUserSays) {
  const Variables run = kOwn + Variables{{"UNISONO_JOIN", "unix://job"}, {"UNISONO_SECRET", "00ffAA9900ffAA99"}};
  // `unisono run` below any launcher, whose variables may even be broken.
  const JobEnvironment below = read(run + kSlurm + Variables{{"PMI_FD", "x"}, {"PMIX_RANK", "3"}});
  EXPECT_EQ(below.launcher, Launcher::kNone);
  EXPECT_EQ(below.rendezvous, "job");
  EXPECT_EQ(below.rank, 1U);
  const JobEnvironment file = read(kOwn + kFile + kPmi + Variables{{"PMI_RANK", "3"}});
  EXPECT_EQ(file.rank, 1U);
  EXPECT_EQ(file.size, 4U);
  EXPECT_EQ(file.meeting, MeetingPlace::kFile);
  // A launcher tells the rank, the user where to meet.
  const JobEnvironment mixed = read(kPmi + kFile);
  EXPECT_EQ(mixed.rank, 1U);
  EXPECT_EQ(mixed.meeting, MeetingPlace::kFile);
  EXPECT_EQ(read(kOwn + kPmi).meeting, MeetingPlace::kStore) << "both say the same";
}

TEST(Launchers, ContradictionsNameBoth) {
  EXPECT_THAT(refusal(kPmix + kPmi + Variables{{"PMI_RANK", "3"}}),
              AllOf(HasSubstr("PMIX_RANK is \"1\", but PMI_RANK is \"3\""), HasSubstr("UNISONO_START=pmix")));
  EXPECT_THAT(refusal(kOwn + kPmi + Variables{{"PMI_RANK", "3"}}),
              HasSubstr("UNISONO_RANK is \"1\", but PMI_RANK is \"3\""));
  EXPECT_THAT(refusal(kOwn + kPmi + Variables{{"PMI_SIZE", "5"}}),
              HasSubstr("UNISONO_SIZE is \"4\", but PMI_SIZE is \"5\""));
  EXPECT_THAT(refusal(kOwn + kPmix + Variables{{"PMIX_RANK", "0"}}), HasSubstr("PMIX_RANK is \"0\""));
  EXPECT_THAT(refusal(kOwn + kTorchrun + Variables{{"RANK", "0"}}),
              HasSubstr("UNISONO_RANK is \"1\", but RANK is \"0\""));
  EXPECT_THAT(refusal(kOwn + kTorchrun + Variables{{"WORLD_SIZE", "5"}}),
              HasSubstr("UNISONO_SIZE is \"4\", but WORLD_SIZE is \"5\""));
  EXPECT_THAT(refusal(kPmix + kTorchrun + Variables{{"RANK", "0"}}),
              AllOf(HasSubstr("PMIX_RANK is \"1\", but RANK is \"0\""), HasSubstr("UNISONO_START=torchrun")));
  EXPECT_THAT(refusal(kPmi + kTorchrun + Variables{{"WORLD_SIZE", "8"}}),
              HasSubstr("PMI_SIZE is \"4\", but WORLD_SIZE is \"8\""));
  const Variables both = kPmix + kPmi + Variables{{"PMI_RANK", "3"}};
  EXPECT_EQ(read(both + Variables{{"UNISONO_START", "pmix"}}).rank, 1U);
  EXPECT_EQ(read(both + Variables{{"UNISONO_START", "pmi"}}).rank, 3U);
}

TEST(Launchers, OfBothPmixHoldsIfItsLibraryLoads) {
  const Set set(kPmix + kPmi);
  const auto with = join::detect(WantedStart::kAny, false, loads);
  EXPECT_EQ(with->launcher, Launcher::kPmix);
  EXPECT_EQ(with->size, 4U) << "which PMIx is to confirm";
  EXPECT_EQ(join::detect(WantedStart::kAny, false, does_not_load)->launcher, Launcher::kPmi);
  unsetenv("PMI_FD");
  EXPECT_EQ(join::detect(WantedStart::kAny, false, does_not_load)->launcher, Launcher::kPmix) << "which says why not";
}

TEST(Launchers, CanBeForcedAndForbidden) {
  EXPECT_EQ(read(kPmi + Variables{{"UNISONO_START", "none"}}).size, 1U);
  EXPECT_EQ(read(kOwn + kFile + Variables{{"UNISONO_START", "none"}}).size, 1U);
  EXPECT_EQ(read({{"UNISONO_START", "none"}}).size, 1U);
  EXPECT_THAT(refusal(kPmi + Variables{{"UNISONO_START", "pmix"}}),
              HasSubstr("UNISONO_START is \"pmix\", but should be what has started this process: PMIX_RANK"));
  EXPECT_THAT(refusal(kPmix + Variables{{"UNISONO_START", "pmi"}}), HasSubstr("neither PMI_FD nor PMI_PORT"));
  EXPECT_THAT(refusal(kPmix + Variables{{"UNISONO_START", "pmi2"}}), HasSubstr("UNISONO_START is \"pmi2\", but"));
  EXPECT_EQ(read(kPmi).pmi_version, 0U) << "whichever the launcher speaks";
  const JobEnvironment second = read(kPmi + Variables{{"UNISONO_START", "pmi2"}});
  EXPECT_EQ(second.pmi_version, 2U);
  EXPECT_THAT(second.title(), HasSubstr("PMI-2"));
  EXPECT_THAT(refusal({{"UNISONO_START", "slurm"}}), HasSubstr("SLURM_PROCID and SLURM_NTASKS are not set"));
  for (const char* wrong : {"", "PMI", "pmi3", "mpi"}) {
    EXPECT_THAT(refusal({{"UNISONO_START", wrong}}), HasSubstr("UNISONO_START is \"" + std::string(wrong) + "\", but"));
  }
}

TEST(Launchers, BrokenVariablesAreNamed) {
  for (const char* wrong : {"", "-1", "4", "x", "1 "}) {
    EXPECT_THAT(refusal(kPmi + Variables{{"PMI_RANK", wrong}}),
                HasSubstr("PMI_RANK is \"" + std::string(wrong) + "\", but should be this process's rank, 0 to 3"));
  }
  EXPECT_THAT(refusal(kPmi + Variables{{"PMI_SIZE", "2049"}}), HasSubstr("PMI_SIZE is \"2049\", but should be the "));
  EXPECT_THAT(refusal(kPmi + Variables{{"PMI_FD", "-3"}}), HasSubstr("PMI_FD is \"-3\""));
  EXPECT_THAT(refusal(kPmi + Variables{{"MPI_LOCALRANKID", "x"}}), HasSubstr("MPI_LOCALRANKID is \"x\""));
  EXPECT_THAT(refusal({{"PMI_FD", "3"}}), HasSubstr("PMI_SIZE is not set"));
  EXPECT_THAT(refusal({{"PMI_PORT", "here"}, {"PMI_ID", "0"}}), HasSubstr("PMI_PORT is \"here\""));
  EXPECT_THAT(refusal(kPmix + Variables{{"PMIX_RANK", "4294967295"}}), HasSubstr("PMIX_RANK is \"4294967295\""));
  EXPECT_THAT(refusal(kSlurm + kFile + Variables{{"SLURM_PROCID", "8"}}), HasSubstr("SLURM_PROCID is \"8\""));
  EXPECT_THAT(refusal(kSlurm + Variables{{"UNISONO_START", "slurm"}, {"SLURM_STEP_ID", "batch"}}),
              HasSubstr("SLURM_STEP_ID is \"batch\""));
  EXPECT_THAT(refusal({{"TORCHELASTIC_RUN_ID", "7"}, {"RANK", "0"}}), HasSubstr("WORLD_SIZE is not set"));
  EXPECT_THAT(refusal(kTorchrun + Variables{{"RANK", "4"}}), HasSubstr("RANK is \"4\", but should be this process's"));
  EXPECT_THAT(refusal(kTorchrun + Variables{{"LOCAL_RANK", "x"}}), HasSubstr("LOCAL_RANK is \"x\""));
  EXPECT_THAT(refusal(kTorchrun + Variables{{"LOCAL_WORLD_SIZE", "5"}}), HasSubstr("LOCAL_WORLD_SIZE is \"5\""));
  EXPECT_THAT(refusal(kTorchrun + Variables{{"MASTER_PORT", "0"}}), HasSubstr("MASTER_PORT is \"0\""));
  EXPECT_THAT(refusal(kTorchrun + Variables{{"MASTER_ADDR", "a b"}}), HasSubstr("MASTER_ADDR is \"a b\""));
  EXPECT_THAT(refusal(kTorchrun + kSecret + Variables{{"UNISONO_PORT", "65536"}}),
              HasSubstr("UNISONO_PORT is \"65536\""));
  EXPECT_THAT(refusal(kTorchrun + Variables{{"TORCHELASTIC_RESTART_COUNT", "-1"}}),
              HasSubstr("TORCHELASTIC_RESTART_COUNT is \"-1\""));
  for (const char* wrong : {"file://", "file://job", "file:///", "file:///a/"}) {
    EXPECT_THAT(refusal(kOwn + Variables{{"UNISONO_JOIN", wrong}}),
                HasSubstr("UNISONO_JOIN is \"" + std::string(wrong) + "\", but should be file:///path"));
  }
}

TEST(Launchers, OneRankAsksNobody) {
  EXPECT_EQ(read({{"PMI_FD", "7"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).size, 1U);
  const JoinedJob job = join_job(read({{"PMI_FD", "7"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}), {});
  EXPECT_EQ(job.poe->size(), 1U);
}

}  // namespace
}  // namespace unisono
