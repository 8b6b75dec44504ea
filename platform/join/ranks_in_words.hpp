// Ranks, and the hosts they are on, in sentences about who has not come.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::join {

/// "rank 3 has", "ranks 1, 2 and 5 have"; with hosts "rank 1 on a, ranks 2 and 3 on b have". Shortened if there are
/// many. `ranks`: rising, at least one. `hosts`: by rank, empty where it is not known; or none at all.
std::string ranks_have(std::span<const std::uint32_t> ranks, std::span<const std::string> hosts);

/// The hosts of all ranks, from "a:2,b:2,a:1": hosts with commas between them, and how many ranks each has, in order of
/// rank. Nothing if the text is something else, or of another number of ranks than `size`.
std::optional<std::vector<std::string>> hosts_of_ranks(std::string_view text, std::uint32_t size);

}  // namespace unisono::join
