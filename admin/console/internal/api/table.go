package api

import "github.com/postrider/postrider/admin/console/auth"

// table holds all routes, with the lowest role for each. The mux is built from it; nothing else is
// served below /api/v1. An init function fills it, because methods refer to it.
var table []route

func init() {
	const get, post, put, del = "GET", "POST", "PUT", "DELETE"
	const viewer, operator, admin = auth.Viewer, auth.Operator, auth.Admin
	at := func(method, path string, least auth.Role) Route {
		return Route{Method: method, Path: path, Least: least}
	}
	table = []route{
		{at(get, "/me", viewer), "The authenticated user", handle((*Server).me)},
		{at(get, "/overview", viewer), "State and problems of a database", handle((*Server).overview)},
		{at(get, "/series", viewer), "Rates and latencies of the last minutes", handle((*Server).series)},
		{at(get, "/events", viewer), "Each new sample, and the overview when it has changed", stream((*Server).events)},

		{at(get, "/feeds", viewer), "All feeds", handle((*Server).feeds)},
		{at(post, "/feeds", admin), "Add a feed", handle((*Server).addFeed)},
		{at(get, "/feeds/{name}", viewer), "A feed with its shards, relays and outages", handle((*Server).feed)},
		{at(del, "/feeds/{name}", admin), "Remove a feed and its deferred messages", handle((*Server).removeFeed)},
		{at(post, "/feeds/{name}/pause", operator), "Pause a feed", handle((*Server).pauseFeed)},
		{at(post, "/feeds/{name}/resume", operator), "Resume a feed", handle((*Server).resumeFeed)},
		{at(post, "/feeds/{name}/rewind", admin), "Move a feed back to an earlier position", handle((*Server).rewindFeed)},
		{at(get, "/relays", viewer), "All relays", handle((*Server).relays)},

		{at(get, "/messages", viewer), "Messages of the log, newest first", handle((*Server).messages)},
		{at(get, "/messages/tail", viewer), "Messages as they are enqueued", stream((*Server).tail)},
		{at(get, "/messages/{id}", viewer), "The complete history of a message", handle((*Server).message)},

		{at(get, "/dead", viewer), "Deferred messages, oldest first", handle((*Server).dead)},
		{at(get, "/dead/count", viewer), "Number of deferred messages, by status", handle((*Server).deadCount)},
		{at(get, "/dead/groups", viewer), "Deferred messages grouped by error", handle((*Server).deadGroups)},
		{
			Route{post, "/dead/act", operator, map[string]auth.Role{"discard": admin}}, "Retry, discard, park or skip messages",
			handle((*Server).deadAct),
		},
		{at(put, "/dead/{feed}/{id}", operator), "Change a dead or parked message, and send it", handle((*Server).deadEdit)},
		{at(get, "/keys", viewer), "Blocked keys, longest blocked first", handle((*Server).keys)},
		{at(post, "/keys/act", operator), "Retry, skip or park the message that blocks a key", handle((*Server).keyAct)},

		{at(get, "/consumers", viewer), "All consumers", handle((*Server).consumers)},
		{at(get, "/idempotency", viewer), "Idempotency keys, latest expiry first", handle((*Server).idempotency)},
		{at(get, "/sagas", viewer), "Sagas, newest first", handle((*Server).sagas)},
		{at(get, "/sagas/count", viewer), "Number of sagas, by status", handle((*Server).sagaCount)},
		{at(get, "/sagas/{name}/{id}", viewer), "A saga with its steps", handle((*Server).saga)},
		{at(post, "/sagas/{name}/{id}/act", operator), "Retry, compensate or skip steps of a saga", handle((*Server).sagaAct)},
		{at(get, "/reconcilers", viewer), "Reconcilers", handle((*Server).reconcilers)},
		{at(post, "/reconcilers/{job}/run", operator), "Run a reconciler now", handle((*Server).runReconciler)},

		{at(get, "/databases", viewer), "Health of the databases", handle((*Server).health)},
		{at(get, "/doctor", viewer), "Findings of the doctor; cached for 10 s", handleFor(checkupLimit, (*Server).checkup)},
		{at(get, "/audit", viewer), "Audit log, newest first", handle((*Server).audit)},

		{at(get, "/replays", viewer), "Replays, newest first", handle((*Server).replays)},
		{at(post, "/replays", operator), "Send messages again", handle((*Server).startReplay)},
		{at(get, "/replays/{id}", viewer), "A replay", handle((*Server).replay)},
		{at(post, "/replays/{id}/pause", operator), "Pause a replay", handle((*Server).pauseReplay)},
		{at(post, "/replays/{id}/resume", operator), "Resume a replay", handle((*Server).resumeReplay)},
		{at(post, "/replays/{id}/cancel", operator), "Cancel a replay", handle((*Server).cancelReplay)},
	}
}
