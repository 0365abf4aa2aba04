// The web server of `shorthand explore`: the page's files and its API, on the loopback interface.
//
// Requests whose Host is not this server's own, or that come from a page of another origin, are
// refused, so that no other page can read what is captured here.
// Thread-safety: Stop may be called from any thread, the rest from one.
#ifndef SHORTHAND_TOOLS_EXPLORE_SERVER_H_
#define SHORTHAND_TOOLS_EXPLORE_SERVER_H_

#include <memory>
#include <string>

#include "explore_data.h"

namespace shorthand {

class ExploreServer {
 public:
  // On 127.0.0.1; port 0: any that is free. Errors: kResourceExhausted for a port in use.
  // Measures on what `capture` names.
  static Result<std::unique_ptr<ExploreServer>> Open(ExploreData data, CaptureRequest capture,
                                                     int port);
  ~ExploreServer();

  std::string url() const;
  // Serves until Stop.
  void Run();
  void Stop();

 private:
  struct Impl;
  explicit ExploreServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace shorthand

#endif  // SHORTHAND_TOOLS_EXPLORE_SERVER_H_
