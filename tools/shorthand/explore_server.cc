#include "explore_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <utility>

#include "embedded.h"
#include "explore_api.h"

namespace shorthand {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

std::string ContentType(std::string_view file) {
  if (file.ends_with(".html")) return "text/html; charset=utf-8";
  if (file.ends_with(".css")) return "text/css; charset=utf-8";
  return "text/javascript; charset=utf-8";
}

ApiParameters ParametersOf(const httplib::Request& request) {
  return {request.params.begin(), request.params.end()};
}

void Send(const ApiReply& reply, httplib::Response& response) {
  response.status = reply.status;
  response.set_content(reply.body, reply.content_type.c_str());
}

}  // namespace

struct ExploreServer::Impl {
  Impl(ExploreData known, CaptureRequest capture)
      : data(std::move(known)), live(std::move(capture)) {}

  ExploreData data;
  LiveRuns live;
  int port = 0;
  httplib::Server server;

  bool IsOwn(const std::string& host) const {
    return host == fmt::format("{}:{}", kLoopback, port) ||
           host == fmt::format("localhost:{}", port);
  }

  // Of a page elsewhere, or of a name that somebody else's DNS points here.
  bool IsForeign(const httplib::Request& request) const {
    if (!IsOwn(request.get_header_value("Host"))) return true;
    const std::string origin = request.get_header_value("Origin");
    constexpr std::string_view kScheme = "http://";
    return !origin.empty() &&
           !(origin.starts_with(kScheme) && IsOwn(origin.substr(kScheme.size())));
  }

  void AddRoutes() {
    server.set_default_headers(
        {{"Cache-Control", "no-store"},
         {"X-Content-Type-Options", "nosniff"},
         {"Content-Security-Policy", "default-src 'self'; img-src 'self' data:"}});
    server.set_pre_routing_handler([this](const auto& request, auto& response) {
      if (!IsForeign(request)) return httplib::Server::HandlerResponse::Unhandled;
      Send(ErrorReply(403, "this server answers its own page alone"), response);
      return httplib::Server::HandlerResponse::Handled;
    });
    server.set_error_handler([](const auto&, auto& response) {
      if (response.body.empty())
        Send(ErrorReply(response.status, "there is nothing here"), response);
    });
    AddApi("/api/info", InfoReply);
    AddApi("/api/plan", PlanReply);
    AddApi("/api/results", ResultsReply);
    AddApi("/api/slice", SliceReply);
    server.Get("/api/live", [this](const auto& request, auto& response) {
      Send(LiveReply(live, ParametersOf(request)), response);
    });
    // Without a reader the library would wait for bodies that are not announced.
    server.Post("/api/live", [this](const auto& request, auto& response, const auto&) {
      Send(StartLiveReply(live, ParametersOf(request)), response);
    });
    server.Delete("/api/live", [this](const auto& request, auto& response, const auto&) {
      Send(StopLiveReply(live, ParametersOf(request)), response);
    });
    for (const EmbeddedFile& file : EmbeddedFiles_explore()) {
      const auto send = [file](const httplib::Request&, httplib::Response& response) {
        response.set_content(std::string(file.bytes), ContentType(file.name).c_str());
      };
      server.Get(fmt::format("/{}", file.name), send);
      if (file.name == "index.html") server.Get("/", send);
    }
  }

  void AddApi(const char* path, ApiReply (*answer)(const ExploreData&, const ApiParameters&)) {
    server.Get(path, [this, answer](const httplib::Request& request, httplib::Response& response) {
      Send(answer(data, ParametersOf(request)), response);
    });
  }
};

ExploreServer::ExploreServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExploreServer::~ExploreServer() = default;

Result<std::unique_ptr<ExploreServer>> ExploreServer::Open(ExploreData data, CaptureRequest capture,
                                                           int port) {
  auto impl = std::make_unique<Impl>(std::move(data), std::move(capture));
  // The library's own options would let two servers share a port.
  impl->server.set_socket_options([](int socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  const bool bound = port == 0 ? (impl->port = impl->server.bind_to_any_port(kLoopback)) > 0
                               : impl->server.bind_to_port(kLoopback, impl->port = port);
  if (!bound) {
    return ResourceExhausted(
        fmt::format("port {} is in use; --port takes another, 0 any that is free", port));
  }
  impl->AddRoutes();
  return std::unique_ptr<ExploreServer>(new ExploreServer(std::move(impl)));
}

std::string ExploreServer::url() const {
  return fmt::format("http://{}:{}/", kLoopback, impl_->port);
}
void ExploreServer::Run() { impl_->server.listen_after_bind(); }
void ExploreServer::Stop() { impl_->server.stop(); }

}  // namespace shorthand
