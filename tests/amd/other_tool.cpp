// Another tool of rocprofiler-sdk, as rocprofv3 brings one: it notes in the file that OTHER_TOOL names what it is
// asked.
#include <cstdio>
#include <cstdlib>

namespace {

struct Client {
  std::size_t size;
  const char* name;
  const unsigned handle;
};
struct Configuration {
  std::size_t size;
  int (*initialize)(void (*)(unsigned), void*);
  void (*finalize)(void*);
  void* data;
};

void note(const char* what) {
  if (std::FILE* file = std::fopen(std::getenv("OTHER_TOOL"), "a")) {
    std::fputs(what, file);
    std::fclose(file);
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) Configuration* rocprofiler_configure(unsigned, const char*, unsigned,
                                                                                       Client* client) {
  static Configuration made{sizeof(Configuration),
                            [](void (*)(unsigned), void*) {
                              note("initialized ");
                              return 0;
                            },
                            [](void*) { note("finalized "); }, nullptr};
  client->name = "rocprofv3";
  return &made;
}
