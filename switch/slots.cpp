#include "switch/slots_inl.hpp"

namespace unisono::slots {

template class BasicPool<>;

}  // namespace unisono::slots
