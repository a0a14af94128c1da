#include "xla/space.h"

#include <algorithm>
#include <cmath>

#include "xla/wire.h"

namespace leadline::xla {
namespace {

constexpr std::string_view kPrograms = "/host:metadata";
constexpr std::string_view kDevices = "/device:";

int place_of(const std::vector<std::string>& names, std::string_view name) noexcept {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

int64_t saturated(int64_t a, int64_t factor, int64_t plus) noexcept {
  int64_t result = 0;
  const bool over = __builtin_mul_overflow(a, factor, &result) || __builtin_add_overflow(result, plus, &result);
  return over ? INT64_MAX : result;
}

// Key and message of an entry of a map.
bool read_entry(std::string_view bytes, int64_t* key, std::string_view* value) noexcept {
  Wire wire(bytes);
  Field field;
  while (wire.next(&field)) {
    if (field.is(1, 0)) *key = field.integer();
    if (field.is(2, 2)) *value = field.bytes;
  }
  return wire.ok();
}

std::string text_of(const Field& field) {
  switch (field.number) {
    case 2:
      return std::to_string(field.number_of());
    case 3:
      return std::to_string(field.value);
    case 4:
      return std::to_string(field.integer());
    default:
      return std::string(field.bytes);
  }
}

// `fusion.1` of the text of an instruction, `%fusion.1 = f32[8] fusion(...)`.
std::string_view instruction_of(std::string_view name) noexcept {
  if (!name.starts_with('%')) return name;
  name.remove_prefix(1);
  return name.substr(0, name.find(' '));
}

// A column begins with the first event that has its statistic.
template <typename T>
void put_into(std::vector<T>& column, size_t row, size_t room, T value, T nothing) {
  if (column.capacity() < room) column.reserve(room);
  if (column.size() <= row) column.resize(row + 1, nothing);
  column[row] = value;
}

}  // namespace

Space::Space(std::string_view bytes, Wanted wanted, std::string* problem) : wanted_(std::move(wanted)) {
  events_.numbers.resize(wanted_.numbers.size());
  events_.texts.resize(wanted_.texts.size());
  Wire wire(bytes);
  Field field;
  bool good = true;
  while (good && wire.next(&field)) {
    if (field.is(1, 2)) good = read_plane(field.bytes);
    if (field.is(2, 2) || field.is(3, 2)) complaints_.push_back(field.bytes);
    if (field.is(4, 2)) hosts_.push_back(field.bytes);
  }
  if (!good || !wire.ok()) *problem = "These bytes are no profile of XLA (XSpace), or they are damaged or cut off.";
  for (auto& column : events_.numbers) {
    if (!column.empty()) column.resize(events_.size(), kUnknown);
  }
  for (auto& column : events_.texts) {
    if (!column.empty()) column.resize(events_.size(), kNoText);
  }
  base_ns_ = INT64_MAX;
  for (const uint32_t line : events_.line) base_ns_ = std::min(base_ns_, lines_[line].timestamp_ns);
  if (events_.line.empty()) base_ns_ = 0;
  for (size_t row = 0; row < events_.size(); ++row) {
    int64_t after_ns = 0;
    if (__builtin_sub_overflow(lines_[events_.line[row]].timestamp_ns, base_ns_, &after_ns)) after_ns = INT64_MAX;
    events_.start_ps[row] = saturated(after_ns, 1000, events_.start_ps[row]);
  }
  tell_devices();
  tell_operations();
}

int Space::number_column(std::string_view name) const noexcept { return place_of(wanted_.numbers, name); }
int Space::text_column(std::string_view name) const noexcept { return place_of(wanted_.texts, name); }

uint32_t Space::text(std::string_view value) {
  if (value.empty()) return kNoText;
  const auto found = known_.find(value);
  if (found != known_.end()) return found->second;
  strings_.emplace_back(value);
  const auto row = static_cast<uint32_t>(strings_.size() - 1);
  known_.emplace(strings_.back(), row);
  return row;
}

bool Space::read_plane(std::string_view bytes) {
  const auto row = static_cast<uint32_t>(planes_.size());
  planes_.emplace_back();
  Names names;
  if (!read_names(bytes, &names)) return false;
  Wire wire(bytes);
  Field field;
  while (wire.next(&field)) {
    if (field.is(3, 2) && !read_line(field.bytes, names)) return false;
    if (!field.is(6, 2)) continue;
    Wire stat(field.bytes);
    Field part;
    std::string_view name;
    std::string value;
    while (stat.next(&part)) {
      if (part.number == 1) {
        const auto known = names.stats.find(part.integer());
        if (known != names.stats.end()) name = known->second.name;
      } else if (part.number == 7) {
        const auto known = names.stats.find(part.integer());
        if (known != names.stats.end()) value = known->second.name;
      } else {
        value = text_of(part);
      }
    }
    planes_[row].stats.emplace_back(name, std::move(value));
  }
  return wire.ok();
}

// Names come after the lines that use them.
bool Space::read_names(std::string_view bytes, Names* names) {
  Wire wire(bytes);
  Field field;
  while (wire.next(&field)) {
    if (field.is(2, 2)) planes_.back().name = field.bytes;
    if (!field.is(5, 2)) continue;
    int64_t key = 0;
    std::string_view value;
    if (!read_entry(field.bytes, &key, &value)) return false;
    Stat stat;
    Wire inner(value);
    Field part;
    while (inner.next(&part)) {
      if (part.is(2, 2)) stat.name = part.bytes;
    }
    stat.number = place_of(wanted_.numbers, stat.name);
    stat.text = place_of(wanted_.texts, stat.name);
    if (stat.number < 0) {
      stat.number = place_of(wanted_.numbers, std::string(stat.name) + "*1000");
      stat.factor = 1000;
    }
    names->stats.emplace(key, stat);
  }
  if (!wire.ok()) return false;
  Wire again(bytes);
  while (again.next(&field)) {
    if (field.is(4, 2) && !read_event_name(field.bytes, names)) return false;
  }
  return true;
}

bool Space::read_event_name(std::string_view bytes, Names* names) {
  int64_t key = 0;
  std::string_view value;
  if (!read_entry(bytes, &key, &value)) return false;
  EventName known;
  std::string_view plain;
  std::string_view shown;
  Program program;
  program.id = key;
  Wire wire(value);
  Field field;
  while (wire.next(&field)) {
    if (field.is(2, 2)) plain = field.bytes;
    if (field.is(4, 2)) shown = field.bytes;
    if (!field.is(5, 2)) continue;
    Value stat;
    std::string_view raw;
    if (!read_stat(field.bytes, *names, &stat, &raw)) return false;
    if (stat.column >= 0) known.values.push_back(stat);
    if (!raw.empty()) program.module = raw;
  }
  // On TPUs the plain name is the text of a whole instruction; on hosts the other one leaves out what node it was.
  const bool of_device = planes_.back().name.starts_with(kDevices);
  known.name = text(!of_device ? plain : shown.empty() ? instruction_of(plain) : shown);
  names->events.emplace(key, std::move(known));
  if (!program.module.empty() && planes_.back().name == kPrograms) {
    Wire proto(program.module);
    program.name = plain;
    program.module = {};
    while (proto.next(&field)) {
      if (field.is(1, 2)) program.module = field.bytes;
    }
    if (!program.module.empty()) programs_.push_back(program);
  }
  return wire.ok();
}

bool Space::read_stat(std::string_view bytes, const Names& names, Value* value, std::string_view* raw) {
  Wire wire(bytes);
  Field field;
  const Stat* stat = nullptr;
  double share = NAN;  // of a statistic that is wanted in thousandths; whole numbers are written as such
  const auto find = [&](const Field& id) {
    const auto found = names.stats.find(id.integer());
    return found == names.stats.end() ? nullptr : &found->second;
  };
  while (wire.next(&field)) {
    switch (field.number) {
      case 1:
        stat = find(field);
        break;
      case 2: {
        share = field.number_of();
        if (std::abs(share) < 9e18) value->number = static_cast<int64_t>(share);
        break;
      }
      case 3:
      case 4:
        value->number = field.integer();
        share = static_cast<double>(value->number);
        break;
      case 5:
        if (stat == nullptr || stat->text >= 0) value->text = text(field.bytes);
        break;
      case 6:
        if (raw != nullptr) *raw = field.bytes;
        break;
      case 7: {
        const Stat* other = find(field);
        if (other != nullptr && stat != nullptr && stat->text >= 0) value->text = text(other->name);
        break;
      }
      default:
        break;
    }
  }
  if (stat != nullptr) {
    value->is_text = stat->text >= 0;
    value->column = value->is_text ? stat->text : stat->number;
    if (stat->factor != 1 && std::abs(share) < 9e15) value->number = std::llround(share * stat->factor);
  }
  return wire.ok();
}

bool Space::read_line(std::string_view bytes, const Names& names) {
  const auto row = static_cast<uint32_t>(lines_.size());
  Line line;
  line.plane = static_cast<uint32_t>(planes_.size() - 1);
  std::string_view shown;
  size_t count = 0;
  Wire wire(bytes);
  Field field;
  while (wire.next(&field)) {
    if (field.is(4, 2)) ++count;
    if (field.is(1, 0)) line.id = field.integer();
    if (field.is(2, 2)) line.name = field.bytes;
    if (field.is(3, 0)) line.timestamp_ns = field.integer();
    if (field.is(11, 2)) shown = field.bytes;
  }
  if (!wire.ok()) return false;
  if (line.name.empty()) line.name = shown;
  lines_.push_back(line);
  expect(count);
  Wire again(bytes);
  while (again.next(&field)) {
    if (field.is(4, 2) && !read_event(field.bytes, names, row)) return false;
  }
  return true;
}

// Room for a line's events at once, so that a large file does not hold its columns twice while they grow.
void Space::expect(size_t more) {
  const size_t least = events_.size() + more;
  if (least <= events_.line.capacity()) return;
  const size_t room = std::max(least, events_.line.capacity() + events_.line.capacity() / 4);
  events_.line.reserve(room);
  events_.name.reserve(room);
  events_.start_ps.reserve(room);
  events_.duration_ps.reserve(room);
}

void Space::put(size_t row, const Value& value) {
  if (value.column < 0) return;
  const auto column = static_cast<size_t>(value.column);
  const size_t room = events_.line.capacity();
  if (value.is_text) {
    put_into(events_.texts[column], row, room, value.text, kNoText);
  } else {
    put_into(events_.numbers[column], row, room, value.number, kUnknown);
  }
}

bool Space::read_event(std::string_view bytes, const Names& names, uint32_t line) {
  const size_t row = events_.size();
  events_.line.push_back(line);
  events_.name.push_back(kNoText);
  events_.start_ps.push_back(0);
  events_.duration_ps.push_back(0);
  Wire wire(bytes);
  Field field;
  while (wire.next(&field)) {
    if (field.is(1, 0)) {
      const auto found = names.events.find(field.integer());
      if (found == names.events.end()) continue;
      events_.name[row] = found->second.name;
      for (const Value& value : found->second.values) put(row, value);
    } else if (field.is(2, 0)) {
      events_.start_ps[row] = field.integer();
    } else if (field.is(3, 0)) {
      events_.duration_ps[row] = std::max<int64_t>(field.integer(), 0);
    } else if (field.is(4, 2)) {
      Value value;
      if (!read_stat(field.bytes, names, &value, nullptr)) return false;
      put(row, value);
    }
  }
  return wire.ok();
}

}  // namespace leadline::xla
