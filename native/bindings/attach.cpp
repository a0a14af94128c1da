// For `leadline attach`: a process that loads this module from outside, by a debugger's way, runs Python through here.
#include <Python.h>
#include <pthread.h>

namespace {

void* run(void* code) {
  const PyGILState_STATE state = PyGILState_Ensure();
  PyRun_SimpleString(static_cast<const char*>(code));
  PyGILState_Release(state);
  return nullptr;
}

}  // namespace

// `code` is kept by who calls. The caller may be any thread, with or without the GIL: a thread of its own waits for it.
extern "C" __attribute__((visibility("default"))) int leadline_run_soon(const char* code) {
  if (Py_IsInitialized() == 0) return -1;
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, run, const_cast<char*>(code)) != 0) return -1;
  pthread_detach(thread);
  return 0;
}
