// CUPTI's functions for samples of the program counter, over the fake GPU.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "testing/nvidia/fake_gpu.h"

using namespace leadline::testing;  // NOLINT: one file, exported C names only

extern "C" FakeGpu* fake_gpu();

namespace {

FakeSampling::OfContext* of(void* context) {
  FakeSampling& s = fake_gpu()->sampling;
  const auto found = s.contexts.find(context);
  if (found != s.contexts.end() && found->second.on) return &found->second;
  ++s.calls_while_off;
  return nullptr;
}

void called(const char* name) {
  FakeGpu& gpu = *fake_gpu();
  if (!ApiScope::inside() && gpu.calls_of_program.load() > 0) {
    const std::lock_guard lock(gpu.mutex);
    ++gpu.sampling.calls_beside;
  }
  gpu.called(name);
}

// This stand-in gives samples beside records of kernels, as CUPTI's documentation has it and 13.0 on an H100 does not.
const int beside_records = ::setenv("LEADLINE_PC_RECORDS", "kernels", 0);

bool new_records() { return fake_gpu()->cupti_version >= cupti::kVersion12_4; }

}  // namespace

extern "C" {

cupti::Result cuptiPCSamplingEnable(cupti::SamplingOfContext* p) {
  called("cuptiPCSamplingEnable");
  const std::lock_guard lock(fake_gpu()->mutex);
  FakeSampling& s = fake_gpu()->sampling;
  if (p->size != sizeof *p) return cupti::kInvalidParameter;
  if (s.enable_result != cupti::kSuccess) return s.enable_result;
  s.contexts[p->context].on = true;
  return cupti::kSuccess;
}
cupti::Result cuptiPCSamplingDisable(cupti::SamplingOfContext* p) {
  called("cuptiPCSamplingDisable");
  const std::lock_guard lock(fake_gpu()->mutex);
  if (FakeSampling::OfContext* c = of(p->context)) c->on = c->open = false;
  return cupti::kSuccess;
}
cupti::Result cuptiPCSamplingStart(cupti::SamplingOfContext* p) {
  called("cuptiPCSamplingStart");
  const std::lock_guard lock(fake_gpu()->mutex);
  FakeSampling::OfContext* c = of(p->context);
  if (c == nullptr || c->open) return cupti::kInvalidOperation;
  if (fake_gpu()->kinds.contains(cupti::Kind::kConcurrentKernel)) return cupti::kInvalidOperation;  // it would hang
  c->open = true;
  ++c->range;
  ++fake_gpu()->sampling.starts;
  return cupti::kSuccess;
}
cupti::Result cuptiPCSamplingStop(cupti::SamplingOfContext* p) {
  called("cuptiPCSamplingStop");
  const std::lock_guard lock(fake_gpu()->mutex);
  FakeSampling::OfContext* c = of(p->context);
  if (c == nullptr || !c->open) return cupti::kInvalidOperation;
  c->open = false;
  ++fake_gpu()->sampling.stops;
  return cupti::kSuccess;
}
cupti::Result cuptiPCSamplingSetConfigurationAttribute(cupti::SamplingSettings* p) {
  const std::lock_guard lock(fake_gpu()->mutex);
  FakeSampling& s = fake_gpu()->sampling;
  FakeSampling::OfContext* c = of(p->context);
  if (c == nullptr) return cupti::kInvalidOperation;
  cupti::Result result = cupti::kSuccess;
  for (std::size_t i = 0; i < p->count; ++i) {
    cupti::SamplingSetting& setting = p->settings[i];
    setting.status = cupti::kSuccess;
    if (setting.attribute == cupti::SamplingAttribute::kMode) {
      if (setting.value.choice == s.refused_mode) setting.status = cupti::kInvalidOperation;
      c->mode = setting.value.choice;
    }
    if (setting.attribute == cupti::SamplingAttribute::kHardwareBuffer && s.refuses_hardware_buffer) {
      setting.status = cupti::kInvalidOperation;
    }
    if (setting.status != cupti::kSuccess) result = cupti::kInvalidOperation;
  }
  return result;
}
cupti::Result cuptiPCSamplingGetNumStallReasons(cupti::StallReasonCount* p) {
  *p->count = 2 * fake_stall_names().size();
  return cupti::kSuccess;
}
cupti::Result cuptiPCSamplingGetStallReasons(cupti::StallReasons* p) {
  for (std::size_t i = 0; i < 2 * fake_stall_names().size() && i < p->count; ++i) {
    p->indices[i] = static_cast<std::uint32_t>(i);
    std::snprintf(p->names[i], cupti::kStallNameSize, "smsp__pcsamp_warps_issue_stalled_%s%s",
                  fake_stall_names()[i / 2], i % 2 == 1 ? "_not_issued" : "");
  }
  return cupti::kSuccess;
}
cupti::Result cuptiPCSamplingGetData(cupti::SamplingGetData* p) {
  called("cuptiPCSamplingGetData");
  const std::lock_guard lock(fake_gpu()->mutex);
  FakeSampling& s = fake_gpu()->sampling;
  FakeSampling::OfContext* c = of(p->context);
  if (c == nullptr) return cupti::kInvalidOperation;
  cupti::SamplingData& data = *p->data;
  const std::size_t stride = new_records() ? sizeof(cupti::PcRecord) : cupti::kPcRecordBytes12_0;
  data.records = 0;
  data.dropped_samples = std::exchange(s.drop, 0);
  data.range = c->range;
  if (std::exchange(s.buffer_full, false)) {
    data.hardware_buffer_full = 1;
    c->pending.clear();
    return cupti::kOutOfMemory;
  }
  // All of one answer are of one range.
  const auto ready = [&] { return !c->pending.empty() && (!s.late || c->pending.front().range < c->range); };
  if (ready()) data.range = c->pending.front().range;
  while (ready() && c->pending.front().range == data.range && data.records < std::min(data.room, s.at_once)) {
    const FakeSampling::Pending one = c->pending.front();
    c->pending.pop_front();
    auto* at = static_cast<unsigned char*>(data.pcs) + data.records++ * stride;
    cupti::PcRecord record{};
    std::memcpy(&record, at, stride);
    record.code = one.code;
    record.offset = one.pc.offset;
    record.function = const_cast<char*>(s.name(one.pc.function));
    record.stall_count = 1;
    record.stalls[0] = {one.pc.reason, one.pc.count * one.launches};
    if (one.pc.latency > 0) {
      record.stalls[1] = {one.pc.reason + 1, one.pc.latency * one.launches};
      record.stall_count = 2;
    }
    record.correlation_id = one.correlation;
    data.total_samples += one.pc.count * one.launches;
    std::memcpy(at, &record, stride);
  }
  data.remaining = ready() ? c->pending.size() : 0;
  return cupti::kSuccess;
}
cupti::Result cuptiRegisterComputeCrcCallback(cupti::HashCode hash) {
  const std::lock_guard lock(fake_gpu()->mutex);
  fake_gpu()->sampling.hash = hash;
  return cupti::kSuccess;
}

}  // extern "C"
