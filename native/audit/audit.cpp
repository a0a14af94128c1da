// The loader's questions (man 7 rtld-audit), answered for the functions that LEADLINE_AUDIT names.
//
// Runs inside the loader, in a namespace of its own: no memory, no file, no lock, no C++ library.
#include <elf.h>
#include <fnmatch.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "audit/mailbox.h"
#include "audit/thunks.h"

#ifdef LEADLINE_HAS_THUNKS
LEADLINE_THUNKS(0);
#endif

namespace leadline::audit {
namespace {

constexpr uintptr_t kNotOurs = 0;
constexpr uintptr_t kMailboxOwner = 1;  // Leadline's native module, which asks for the mailbox
constexpr uintptr_t kAccelerator = 2;   // and more: the number of an accelerator + this
constexpr unsigned kAll = LA_FLG_BINDTO | LA_FLG_BINDFROM;

Thunks thunks;

Thunks* mailbox() { return &thunks; }

// The words of one line of the description.
struct Line {
  const char* word = nullptr;  // what it is about
  size_t word_bytes = 0;
  const char* value = nullptr;  // the second word
  size_t value_bytes = 0;
  bool is(const char* name) const { return strlen(name) == word_bytes && memcmp(word, name, word_bytes) == 0; }
};

// Calls f(line) for each until it answers true.
template <class F>
void for_each_line(const char* text, F&& f) {
  while (text != nullptr && *text != 0) {
    const size_t bytes = strcspn(text, "\n");
    Line line;
    line.word = text;
    line.word_bytes = strcspn(text, "\t\n");
    if (line.word_bytes < bytes) {
      line.value = text + line.word_bytes + 1;
      line.value_bytes = strcspn(line.value, "\t\n");
    }
    if (f(line)) return;
    text += bytes + (text[bytes] != 0 ? 1 : 0);
  }
}

const char* file_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

// As capture/accelerator.py says it: a pattern without a folder is of the file's name, and takes its version, too.
bool matches(const Line& library, const char* path) {
  char pattern[512];
  if (library.value_bytes == 0 || library.value_bytes + 3 > sizeof pattern) return false;
  memcpy(pattern, library.value, library.value_bytes);
  pattern[library.value_bytes] = 0;
  const char* of = strchr(pattern, '/') != nullptr ? path : file_name(path);
  if (fnmatch(pattern, of, 0) == 0) return true;
  memcpy(pattern + library.value_bytes, ".*", 3);
  return fnmatch(pattern, of, 0) == 0;
}

uintptr_t accelerator_of(const char* path) {
  uintptr_t number = 0;
  uintptr_t found = kNotOurs;
  for_each_line(thunks.description, [&](const Line& line) {
    if (line.is("accelerator")) ++number;
    if (line.is("library") && matches(line, path)) found = kAccelerator + number - 1;
    return found != kNotOurs;
  });
  return found;
}

void* thunk_of(uintptr_t accelerator, const char* name, void* original) {
  uintptr_t number = 0;
  uint32_t function = 0;
  void* answer = original;
  const size_t bytes = strlen(name);
  for_each_line(thunks.description, [&](const Line& line) {
    if (line.is("accelerator")) ++number;
    if (!line.is("function")) return false;
    if (kAccelerator + number - 1 == accelerator && line.value_bytes == bytes && memcmp(line.value, name, bytes) == 0) {
      answer = thunks.take(function, original);
      return true;
    }
    ++function;
    return false;
  });
  return answer;
}

}  // namespace
}  // namespace leadline::audit

using namespace leadline::audit;

extern "C" __attribute__((visibility("default"))) unsigned la_version(unsigned version) {
  thunks.description = getenv(kVariable);
#ifdef LEADLINE_HAS_THUNKS
  thunks.code = leadline_thunk_code;
  thunks.targets = leadline_thunk_targets;
#endif
  if (thunks.description == nullptr || thunks.code == nullptr) return 0;  // the loader lets go of us
  return version < LAV_CURRENT ? version : LAV_CURRENT;
}

extern "C" __attribute__((visibility("default"))) unsigned la_objopen(struct link_map* map, Lmid_t namespace_id,
                                                                      uintptr_t* cookie) {
  *cookie = kNotOurs;
  if (namespace_id != LM_ID_BASE) return 0;
  const char* path = map->l_name != nullptr ? map->l_name : "";
  if (strncmp(file_name(path), "_native.", 8) == 0) *cookie = kMailboxOwner;
  if (*cookie == kNotOurs) *cookie = accelerator_of(path);
  return *cookie != kNotOurs ? kAll : static_cast<unsigned>(LA_FLG_BINDFROM);
}

extern "C" __attribute__((visibility("default"))) uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned, uintptr_t* from,
                                                                         uintptr_t* to, unsigned* flags,
                                                                         const char* name) {
  *flags |= LA_SYMB_NOPLTENTER | LA_SYMB_NOPLTEXIT;
  if (*to == kMailboxOwner) {
    if (strcmp(name, kMailboxName) == 0) return reinterpret_cast<uintptr_t>(&mailbox);
    return symbol->st_value;
  }
  // Leadline itself asks for functions as they are.
  if (*to < kAccelerator || *from == kMailboxOwner) return symbol->st_value;
  return reinterpret_cast<uintptr_t>(thunk_of(*to, name, reinterpret_cast<void*>(symbol->st_value)));
}
