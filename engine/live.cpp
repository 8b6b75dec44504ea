#include "engine/live.hpp"

namespace unisono::cclo {

template class Executor<LaneChannels, KernelValues>;

}  // namespace unisono::cclo
