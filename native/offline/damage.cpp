// What is no JSON is stepped over, and counted with how long it lasted as far as that can be read.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "offline/events.h"

namespace leadline::offline {

bool EventReader::step_over(bool last) {
  const size_t size = buffer_.size();
  const size_t next = next_event(std::min(begin_ + 1, size));
  if (next == size && !last && size - begin_ < kEventLimit) return false;
  const std::string_view lost = std::string_view(buffer_).substr(begin_, next - begin_);
  constexpr std::string_view kDuration = "\"dur\"";
  size_t at = lost.find(kDuration);
  at = at == std::string_view::npos ? at : lost.find_first_not_of(" \t\r\n:\"", at + kDuration.size());
  double dur = 0;
  if (at != std::string_view::npos) std::from_chars(lost.data() + at, lost.data() + lost.size(), dur);
  if (std::isfinite(dur) && dur > 0) broken.dur += dur;
  if (lost.find("\"ph\"") != std::string_view::npos) ++broken.events;
  begin_ = next;
  behind_damage_ = true;
  seeking_ = next == size;
  return !seeking_;
}

void EventReader::lose(Lost& lost, const Event& event) const {
  ++lost.events;
  const auto dur = number_of(event.dur);
  if (event.object && dur && std::isfinite(dur->real) && dur->real > 0) lost.dur += dur->real;
}

// Where the next event may begin behind damage, or the list may end; the end of the text when none does. Objects in
// events stand behind a colon, events behind a comma, a bracket or one another.
size_t EventReader::next_event(size_t from) const noexcept {
  constexpr std::string_view kSpace = " \t\r\n";
  for (size_t at = buffer_.find('{', from); at != std::string::npos; at = buffer_.find('{', at + 1)) {
    const size_t before = at == 0 ? std::string::npos : buffer_.find_last_not_of(kSpace, at - 1);
    const bool follows = before == std::string::npos || buffer_[before] == ',' || buffer_[before] == '[' ||
                         buffer_[before] == '}' || buffer_[before] == ']';
    const size_t key = buffer_.find_first_not_of(kSpace, at + 1);
    if (key == std::string::npos) return buffer_.size();
    if (follows && (buffer_[key] == '"' || buffer_[key] == '}')) return at;
  }
  return buffer_.size();
}

}  // namespace leadline::offline
