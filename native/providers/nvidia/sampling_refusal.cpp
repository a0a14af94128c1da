#include "providers/nvidia/sampling_refusal.h"

namespace leadline::nvidia {

std::string sampling_refusal(const CuptiLibrary& library, const std::string& what, const char* needs,
                             cupti::Result result, const char* doing) {
  const std::string begin = what + " because ";
  switch (result) {
    case cupti::kInsufficientPrivileges:
    case cupti::kVirtualizedInsufficientPrivileges:
      return begin +
             "the driver does not permit it to this user (ERR_NVGPUCTRPERM); load the nvidia module with "
             "NVreg_RestrictProfilingToAdminUsers=0 or give the process CAP_SYS_ADMIN.";
    case cupti::kHardwareBusy:
      return begin +
             "another profiler uses the device's sampling (Nsight, DCGM's profiling metrics); end it, or pause DCGM "
             "with `dcgmi profiling --pause`.";
    case cupti::kMigNotSupported:
      return begin + "CUPTI does not sample on a slice of a device (MIG); run on a whole one.";
    case cupti::kVirtualizedNotSupported:
      return begin + "this virtual GPU does not support it; ask the host's administrator.";
    case cupti::kConfidentialNotSupported:
      return begin + "the device runs in confidential mode, which forbids it.";
    case cupti::kWslNotSupported:
      return begin + "CUPTI does not sample under WSL; run on Linux itself.";
    case cupti::kLegacyProfilerNotSupported:
    case cupti::kCmpNotSupported:
    case cupti::kSliNotSupported:
    case cupti::kNotSupported:
      return begin + "CUPTI " + cupti_version_name(library.version()) +
             " does not support it on this device (it needs " + needs + " and a driver of its own release).";
    case cupti::kInvalidChipName:
      return begin + "CUPTI " + cupti_version_name(library.version()) +
             " does not know this device; install a newer nvidia-cuda-cupti of the driver's CUDA.";
    default:
      return begin + "CUPTI refused " + doing + " (" + library.describe(result) + ").";
  }
}

}  // namespace leadline::nvidia
