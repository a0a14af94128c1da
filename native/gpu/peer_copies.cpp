#include "gpu/peer_copies.h"

#include "leadline/monitor.h"

namespace leadline::gpu {

const PeerCopies::Named* PeerCopies::of(const Work& work) {
  if (work.direction != Direction::kPtoP || work.peer < 0 || work.device < 0) return nullptr;
  const Pair pair{work.peer, work.device, work.link};
  if (const auto found = named_.find(pair); found != named_.end()) return &found->second;
  if (named_.size() >= kMostPairs) return nullptr;
  const std::string from = std::to_string(work.peer);
  const std::string to = std::to_string(work.device);
  const std::string link = work.link == nullptr ? "" : work.link;
  Named made;
  made.name = "Memcpy PtoP (Device " + from + " -> Device " + to + (link.empty() ? "" : ", " + link) + ")";
  made.detail = R"({"direction": "PtoP", "from": )" + from + R"(, "to": )" + to +
                (link.empty() ? "" : R"(, "link": ")" + link + "\"") + "}";
  made.frame = leadline_monitor_new_frame();
  return &named_.emplace(pair, std::move(made)).first->second;
}

}  // namespace leadline::gpu
