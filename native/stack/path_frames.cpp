#include "stack/path_frames.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "base/hash.h"

namespace leadline {
namespace {

constexpr size_t kCallersSearched = 12;
constexpr size_t kModulesAround = 16;
constexpr PathFrameId kNoFrame{~uint32_t{0}};

// Readers may be anywhere, so a set of roles is replaced whole and never freed; it is set once or twice per session.
const CodeRoles g_no_roles;
std::atomic<const CodeRoles*> g_roles{&g_no_roles};

const CodeRoles& roles() noexcept { return *g_roles.load(std::memory_order_acquire); }

}  // namespace

PathFrames::PathFrames(const PythonSource* python, ModuleNames* modules)
    : python_(python), modules_(modules), name_cache_(kNameSlots) {}

void PathFrames::set_roles(const CodeRoles& new_roles) {
  static auto* const kept = new std::deque<CodeRoles>();  // readers may still be in any of them
  static std::mutex changing;
  const std::lock_guard lock(changing);
  kept->push_back(new_roles);
  g_roles.store(&kept->back(), std::memory_order_release);
}

const char* PathFrames::keep(std::string_view text) {
  if (text.empty()) return "";
  const auto found = kept_.find(text);
  if (found != kept_.end()) return found->second;
  text_.emplace_back(text);
  const std::string& kept = text_.back();
  text_bytes_ += kept.size() + sizeof(std::string);
  kept_.emplace(std::string_view(kept), kept.c_str());
  return kept.c_str();
}

PathFrameId PathFrames::add(const PathFrame& frame) {
  frames_.push_back(frame);
  return static_cast<PathFrameId>(frames_.size() - 1);
}

PathFrameId PathFrames::named(FrameKind kind, std::string_view name, std::string_view detail) {
  key_.assign(1, static_cast<char>(kind));
  key_.append(name).push_back('\0');
  key_.append(detail);
  const auto found = named_.find(std::string_view(key_));
  if (found != named_.end()) return found->second;
  PathFrame frame;
  frame.kind = kind;
  frame.name = keep(name);
  frame.detail = keep(detail);
  return named_.emplace(key_, add(frame)).first->second;
}

PathFrameId PathFrames::placed(PathFrameId id, PathFrameId at) {
  const uint64_t key = uint64_t{static_cast<uint32_t>(id)} << 32 | static_cast<uint32_t>(at);
  const auto found = placed_.find(key);
  if (found != placed_.end()) return found->second;
  PathFrame frame = frames_[static_cast<uint32_t>(id)];
  const PathFrame& place = frames_[static_cast<uint32_t>(at)];
  frame.file = place.file;
  frame.line = place.line;
  return placed_.emplace(key, add(frame)).first->second;
}

PathFrameId PathFrames::operator_by_text(const char* name, bool stable, const char* inputs) {
  if (inputs != nullptr) return named(FrameKind::kOperator, name, inputs);
  NameSlot& slot = name_cache_[name_slot(name)];
  if (slot.pointer != name || std::strcmp(frames_[static_cast<uint32_t>(slot.id)].name, name) != 0) {
    slot.id = named(FrameKind::kOperator, name);
    slot.pointer = name;
  }
  slot.stable = stable;
  return slot.id;
}

const PathFrames::Statement& PathFrames::statement(const RawFrame& raw) {
  const uintptr_t fingerprint = python_->fingerprint(raw.code);
  const uint64_t hash = hash_mix(raw.code, raw.instruction);
  const uint32_t known = statement_index_.find(hash, [&](uint32_t at) {
    return statements_[at].code == raw.code && statements_[at].instruction == raw.instruction;
  });
  if (known != IndexTable::kAbsent) [[likely]] {
    Statement& statement = statements_[known];
    // Otherwise another code object has taken the address: what was known about the statement is void.
    if (statement.fingerprint != fingerprint) statement = learn(raw, fingerprint);
    return statement;
  }
  if (!statement_index_.reserve_one()) throw std::bad_alloc();
  statements_.push_back(learn(raw, fingerprint));
  statement_index_.insert(hash, static_cast<uint32_t>(statements_.size() - 1));
  return statements_.back();
}

PathFrames::Statement PathFrames::learn(const RawFrame& raw, uintptr_t fingerprint) {
  Statement statement{raw.code, raw.instruction, fingerprint};
  for (const CodeRoles::Known& known : roles().known) {
    if (known.code == raw.code) statement.role = known.role;
  }
  if (statement.role != CodeRole::kPlain && statement.role != CodeRole::kRecompute) return statement;
  FrameText text;
  python_->describe(raw, &text);
  if (!roles().own_package.empty() && text.file.starts_with(roles().own_package)) {
    statement.role = CodeRole::kOpener;
    return statement;
  }
  PathFrame frame;
  frame.kind = FrameKind::kPython;
  frame.name = keep(text.name);
  frame.file = keep(text.file);
  frame.line = text.line;
  frame.first_line = text.first_line;
  statement.frame = add(frame);
  return statement;
}

PathFrameId PathFrames::module(uintptr_t object, std::span<const ModuleCall> around,
                               std::span<const RawFrame> callers) {
  const uint64_t generation = modules_->generation();
  const uintptr_t type = python_->type_of(object);
  ModuleEntry& entry = modules_seen_[ModuleKey{object, around.empty() ? kNoFrame : around.front().frame}];
  if (entry.generation == generation && entry.type == type) return entry.id;
  std::string class_name;
  python_->describe_object(object, &class_name);
  uintptr_t objects[kModulesAround];
  const size_t count = std::min(around.size(), kModulesAround);
  for (size_t i = 0; i < count; ++i) objects[i] = around[i].object;
  ModuleNames::Qualified qualified = modules_->qualified(object, std::span(objects, count));
  if (qualified.caller != ModuleNames::kNoCaller) {
    const char* const base = frames_[static_cast<uint32_t>(around[qualified.caller].frame)].name;
    qualified.name = qualified.name.empty() ? base : std::string(base) + "." + qualified.name;
  } else if (qualified.complete && !qualified.root_named) {
    std::string variable;
    for (size_t i = 0; i < callers.size() && i < kCallersSearched && variable.empty(); ++i) {
      // `self` names whatever object runs, not the model.
      if (!python_->local_name_of(callers[i].frame, qualified.root, &variable) || variable == "self") variable.clear();
    }
    if (variable.empty()) {
      python_->describe_object(qualified.root, &variable);
    } else {
      modules_->try_name_root(qualified.root, variable);
    }
    qualified.name = qualified.name.empty() ? variable : variable + "." + qualified.name;
  }
  if (qualified.name.empty()) qualified.name = class_name;
  std::string key = "\x01" + qualified.name + '\0' + class_name;
  const auto [found, is_new] = named_.try_emplace(std::move(key));
  if (is_new) {
    PathFrame frame;
    frame.kind = FrameKind::kModule;
    frame.name = keep(qualified.name);
    frame.module = keep(class_name);
    found->second = add(frame);
  }
  if (qualified.complete) entry = ModuleEntry{generation, type, found->second};
  return found->second;
}

size_t PathFrames::held_bytes() const {
  return text_bytes_ + frames_.capacity() * sizeof(PathFrame) + statements_.capacity() * sizeof(Statement) +
         statement_index_.held_bytes() + named_.size() * 96 + name_cache_.size() * sizeof(NameSlot);
}

}  // namespace leadline
