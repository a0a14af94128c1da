#include "providers/cpu/signal_stacks.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <string_view>

#include "base/abandon.h"

namespace leadline::cpu {
namespace {

constexpr size_t kBytes = 64 * 1024;              // of a stack: handlers of the program run on it as well
constexpr size_t kRoom = 12 * 1024;               // what taking a sample needs beside the kernel's frame
constexpr size_t kGuard = 4096;                   // below it, never mapped readable
constexpr pthread_key_t kWithoutAllocation = 32;  // keys below it need no memory of the thread's own
constexpr size_t kMostThreads = 1u << 14;

using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
using Unlock = int (*)(pthread_mutex_t*);
using Find = void* (*)(void*, const char*);

#if defined(__has_cpp_attribute) && __has_cpp_attribute(gnu::musttail)
#define LEADLINE_TAIL [[gnu::musttail]]
#elif defined(__has_cpp_attribute) && __has_cpp_attribute(clang::musttail)
#define LEADLINE_TAIL [[clang::musttail]]
#else
#define LEADLINE_TAIL
#endif

// Threads that have a stack, found by their number; 0: free, -1: was used. A signal handler reads none of it.
std::array<std::atomic<pid_t>, kMostThreads> g_ready;
constexpr size_t kProbes = 64;
__attribute__((tls_model("initial-exec"))) constinit thread_local char* t_stack = nullptr;  // ours
__attribute__((tls_model("initial-exec"))) constinit thread_local pid_t t_ready = 0;        // this thread's number
pthread_key_t g_key;
Create g_create = nullptr;
Unlock g_unlock = nullptr;
Find g_find = nullptr;
std::atomic<SignalStacks*> g_open{nullptr};
thread_local bool t_looking = false;

pid_t own_tid() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }
size_t slot_of(pid_t tid, size_t probe) noexcept { return (static_cast<size_t>(tid) + probe) % kMostThreads; }

bool enter(pid_t tid) noexcept {
  for (size_t probe = 0; probe < kProbes; ++probe) {
    auto& slot = g_ready[slot_of(tid, probe)];
    pid_t found = slot.load(std::memory_order_relaxed);
    if (found == tid) return true;  // of a thread that left without a word
    while (found <= 0) {
      if (slot.compare_exchange_weak(found, tid, std::memory_order_release)) return true;
    }
  }
  return false;
}

void leave(pid_t tid) noexcept {
  for (size_t probe = 0; probe < kProbes; ++probe) {
    pid_t found = tid;
    if (g_ready[slot_of(tid, probe)].compare_exchange_strong(found, -1, std::memory_order_release)) return;
    if (found == 0) return;
  }
}

// At the end of a thread, where its stack pointer is good again.
void on_end(void*) {
  leave(t_ready);
  t_ready = 0;
  if (t_stack == nullptr) return;
  char* const stack = t_stack;
  t_stack = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // Left alone where a handler has ended the thread, or where somebody who keeps it may put it back.
  stack_t now{};
  if (sigaltstack(nullptr, &now) != 0 || now.ss_sp != stack) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  if (sigaltstack(&none, nullptr) == 0) munmap(stack - kGuard, kGuard + kBytes);
}

size_t least_bytes() noexcept {
#ifdef AT_MINSIGSTKSZ
  static const size_t frame = getauxval(AT_MINSIGSTKSZ);
#else
  static const size_t frame = 0;
#endif
  return (frame != 0 ? frame : static_cast<size_t>(4096)) + kRoom;
}

struct Beginning {
  void* (*routine)(void*);
  void* argument;
};

void* begin_thread(void* pointer) {
  auto* const given = static_cast<Beginning*>(pointer);
  const Beginning beginning = *given;
  std::free(given);
  take_signal_stack();
  return beginning.routine(beginning.argument);
}

int create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*), void* argument) {
  auto* const beginning = static_cast<Beginning*>(std::malloc(sizeof(Beginning)));
  if (beginning == nullptr) return g_create(thread, attributes, routine, argument);
  *beginning = {routine, argument};
  const int result = g_create(thread, attributes, begin_thread, beginning);
  if (result != 0) std::free(beginning);
  return result;
}

int unlock(pthread_mutex_t* mutex) {
  const int result = g_unlock(mutex);
  if (t_ready == 0) {
    const int saved_errno = errno;
    take_signal_stack(false);
    errno = saved_errno;
  }
  return result;
}

void look_for_loaded() noexcept {
  if (t_looking) return;
  t_looking = true;
  const int saved_errno = errno;
  if (SignalStacks* const open = g_open.load(std::memory_order_acquire); open != nullptr) open->loaded();
  errno = saved_errno;
  t_looking = false;
}

// Who has loaded a library asks it for its functions, and one of these may begin a thread at once. What RTLD_NEXT means
// depends on who calls, so this function leaves no frame behind.
void* find(void* handle, const char* name) {
  if (handle != RTLD_NEXT) look_for_loaded();
  LEADLINE_TAIL return g_find(handle, name);
}

// Made when this library is loaded: a program that has loaded many others has spent the keys that need no memory.
const bool g_has_key = pthread_key_create(&g_key, on_end) == 0;

uint64_t loads_so_far() noexcept {
  uint64_t loads = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uint64_t*>(out) = info->dlpi_adds;
        return 1;
      },
      &loads);
  return loads;
}

std::string own_path() {
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&begin_thread), &self);
  return self.dli_fname != nullptr ? self.dli_fname : "";
}

// The C library's calls of itself are no calls of the program.
bool is_of_system(std::string_view path) noexcept {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libc.so") || name.starts_with("libpthread") || name.starts_with("ld-") ||
         name.starts_with("linux-vdso");
}

}  // namespace

bool take_signal_stack(bool may_allocate) noexcept {
  const pid_t tid = own_tid();
  if (t_ready == tid) return true;
  t_ready = -1;  // mutexes are let go of on the way
  if (!g_has_key || (!may_allocate && g_key >= kWithoutAllocation)) return false;
  stack_t now{};
  if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_ONSTACK) != 0) {
    t_ready = 0;
    return false;
  }
  if ((now.ss_flags & SS_DISABLE) != 0 || now.ss_size < least_bytes()) {
    if (t_stack == nullptr) {
      void* const place = mmap(nullptr, kGuard + kBytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
      if (place == MAP_FAILED) return false;
      mprotect(place, kGuard, PROT_NONE);
      t_stack = static_cast<char*>(place) + kGuard;
    }
    stack_t ours{};
    ours.ss_sp = t_stack;
    ours.ss_size = kBytes;
    if (sigaltstack(&ours, nullptr) != 0) return false;
  }
  if (pthread_setspecific(g_key, &t_ready) != 0 || !enter(tid)) return false;
  t_ready = tid;
  return true;
}

bool has_signal_stack(pid_t tid) noexcept {
  for (size_t probe = 0; probe < kProbes; ++probe) {
    const pid_t found = g_ready[slot_of(tid, probe)].load(std::memory_order_acquire);
    if (found == tid) return true;
    if (found == 0) return false;
  }
  return false;
}

void put_signal_stack_back(stack_t* of_context) noexcept {
  if ((of_context->ss_flags & SS_DISABLE) == 0 || t_stack == nullptr) return;
  of_context->ss_sp = t_stack;
  of_context->ss_size = kBytes;
  of_context->ss_flags = 0;
}

void forget_signal_stacks() noexcept {
  for (auto& slot : g_ready) slot.store(0, std::memory_order_relaxed);
  t_ready = 0;
}

void SignalStacks::open() {
  take_signal_stack();
  g_create = reinterpret_cast<Create>(dlsym(RTLD_DEFAULT, "pthread_create"));
  g_unlock = reinterpret_cast<Unlock>(dlsym(RTLD_DEFAULT, "pthread_mutex_unlock"));
  g_find = reinterpret_cast<Find>(dlsym(RTLD_DEFAULT, "dlsym"));
  if (g_create == nullptr || g_unlock == nullptr || g_find == nullptr) return;
  own_path_ = own_path();
  loads_ = 0;
  open_ = true;
  g_open.store(this, std::memory_order_release);
  look(false);
}

void SignalStacks::look(bool missing) {
  const std::lock_guard lock(changing_);
  if (!open_) return;
  if (missing != missing_) {
    missing_ = missing;
    if (!missing) unlocked_.clear();
    again_ = true;
  }
  if (again_ || loads_so_far() != loads_) renew();
}

void SignalStacks::loaded() noexcept {
  const std::unique_lock lock(changing_, std::try_to_lock);
  if (!lock.owns_lock() || !open_) return;
  try {
    if (loading_ || loads_so_far() != loads_) renew();
  } catch (const std::bad_alloc&) {  // its threads are not interrupted
  }
}

void SignalStacks::renew() {
  const uint64_t loads = loads_so_far();
  const bool all = again_;
  loads_ = loads;
  loading_ = false;
  std::set<std::string> met;
  const auto wanted = [&](std::string_view path) {
    if (path == own_path_ || is_of_system(path)) return false;
    std::string name(path);
    const bool is_new = all || !known_.contains(name);
    if (is_new) met.insert(std::move(name));
    return is_new;
  };
  const auto redirect = [&](const char* name, void* to, std::vector<GotPatch>* kept) {
    GotPatch made = GotPatch::install(name, to, wanted);
    loading_ = loading_ || made.loading() > 0;
    if (made.replaced() > 0) kept->push_back(std::move(made));
  };
  redirect("pthread_create", reinterpret_cast<void*>(&create), &lasting_);
  redirect("dlsym", reinterpret_cast<void*>(&find), &lasting_);
  if (missing_) redirect("pthread_mutex_unlock", reinterpret_cast<void*>(&unlock), &unlocked_);
  known_.merge(met);
  again_ = loading_;
}

void SignalStacks::close() noexcept {
  const std::lock_guard lock(changing_);
  g_open.store(nullptr, std::memory_order_release);
  open_ = false;
  lasting_.clear();
  unlocked_.clear();
  known_.clear();
  missing_ = again_ = loading_ = false;
}

// Calls stay redirected: what they lead to is the same function in the child.
void SignalStacks::abandon() noexcept {
  forget_signal_stacks();
  g_open.store(nullptr, std::memory_order_release);
  leadline::abandon(changing_);
  leadline::abandon(lasting_);
  leadline::abandon(unlocked_);
  leadline::abandon(known_);
  open_ = missing_ = again_ = loading_ = false;
}

}  // namespace leadline::cpu
