#include "spyre/layout/convert_simd.h"

namespace spyre {

ConvertKernel find_simd_kernel(Encoding, Encoding, Sen169Policy) {
  return nullptr;
}

}  // namespace spyre
