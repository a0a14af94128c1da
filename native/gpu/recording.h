// A real stream of calls and records in a small text file, and its replay without a GPU.
//
// The recorder stands beside the live provider and writes what enters it, with the call path of every place. Replay
// feeds the same classes with the same input, so the folded result must be the same; `FoldedText` is that result as
// text. For tests and bug reports: the recorder locks and allocates, and is on only when asked for.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/correlation_map.h"
#include "gpu/device.h"
#include "gpu/work.h"
#include "leadline/monitor.h"

namespace leadline::gpu {

// Sums of activity events per call path: one line per path, frame and metric, sorted.
class FoldedText {
 public:
  void add(const std::string& path, const std::string& via, const leadline_gpu_activity_event& activity);
  std::string text() const;

 private:
  struct Sum {
    std::uint64_t count = 0;
    std::int64_t sum = 0;
  };
  std::map<std::string, Sum> sums_;
};

class Recorder {
 public:
  // `library`: name and version of the one that the records are from. nullptr with one sentence in *error when the file
  // cannot be written.
  static std::unique_ptr<Recorder> create(const std::string& path, const std::string& library, std::string* error);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void devices(const std::vector<DeviceInfo>& devices);
  void api_begin(const leadline_gpu_api_event& api, leadline_context context, std::int64_t time_ns,
                 std::uint32_t thread);
  void api_end(const leadline_gpu_api_event& api, std::int64_t time_ns, std::uint32_t thread, bool cancelled);
  void inner_call(std::uint32_t correlation, const Launch& launch);
  // A launch made while measuring rested, and when that began (`on`) and ended.
  void paused_call(std::uint32_t correlation);
  void pause(bool on, std::int64_t time_ns);
  void mark(std::uint32_t thread, std::int64_t time_ns, leadline_context context);
  void graph_node(std::uint64_t node, std::uint64_t original, std::uint64_t graph, leadline_context context);
  void work(const Work& work);
  // An activity event the fold gave out: goes into the expected result, PATH.folded, written when the recorder closes.
  void folded(const leadline_gpu_activity_event& activity) noexcept;

 private:
  Recorder(std::FILE* file, std::string path) : file_(file), path_(std::move(path)) {}
  std::uint64_t place(leadline_context context) noexcept;

  std::mutex mutex_;
  std::FILE* file_;
  std::string path_;
  std::unordered_map<leadline_context, std::uint64_t> places_;
  std::vector<std::string> place_text_;
  FoldedText folded_;
};

struct ReplayResult {
  std::string folded;  // FoldedText of everything
  std::uint64_t records = 0;
  std::uint64_t unattributed = 0;
  std::string error;  // one sentence, or empty
};

// Feeds a recording through correlation map, graphs and fold. Needs the process's leadline_monitor_* to deliver
// activity events to a subscriber, which it registers itself for the time of the replay.
ReplayResult replay(const std::string& path, const Vendor& vendor);

}  // namespace leadline::gpu
