// Package api is the control interface of a running standbyd: HTTP with JSON
// over a unix socket of mode 0600 (0660 with a control group) in the runtime folder. Server is the daemon's
// side and Client the command line's.
//
//	GET  /v1/status                     the snapshot, as `status -o json` prints it
//	GET  /v1/history?role=kv            records, oldest first
//	GET  /v1/events?n=10&follow=true    server-sent events, oldest first
//	GET  /v1/pid?target=kv/leader       who that is
//	GET  /v1/logs?target=kv             where the log files are
//	POST /v1/signal                     {"target","signal"}
//	POST /v1/drill                      {"role","fault","count","interval_ms","force"}; JSON lines: {"hit"} and {"record"} of each round, {"done"}
//	POST /v1/ack                        {"role"}
//	POST /v1/start, /stop, /restart     {"target","no_wait"}; answers with the workers when it is done
//	POST /v1/roll                       {"role"}; answers when all workers were restarted, one by one
//	POST /v1/scale                      {"role","workers"}
//	POST /v1/reload                     {"plan"}; reads the config file again
//	POST /v1/shutdown                   a JSON line when it begins and one when all is stopped
//
// GET /v1/openapi.json, and docs/openapi.json, describe all of it.
//
// A failure is a status of 400 or more with {"error":{"code","message"}}, or
// such a line at the end of a stream. Root and the daemon's own user may do
// everything, the control group what [Access] says, others nothing: the kernel
// tells who connected. The probes (/live, /ready, /leader, /standby, /metrics)
// may also be served over TCP, see [Server.Probes]; nothing else ever is.
package api
