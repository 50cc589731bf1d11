package api

import "github.com/postrider/postrider/admin/console/auth"

// table are all routes, and the least role for each. The mux is built from it; nothing else is served below /api/v1. It is
// filled when the program starts: methods look into it.
var table []route

func init() {
	const get, post, put, del = "GET", "POST", "PUT", "DELETE"
	const viewer, operator, admin = auth.Viewer, auth.Operator, auth.Admin
	at := func(method, path string, least auth.Role) Route {
		return Route{Method: method, Path: path, Least: least}
	}
	table = []route{
		{at(get, "/me", viewer), "Who has asked", handle((*Server).me)},
		{at(get, "/overview", viewer), "How a database stands, and what is wrong", handle((*Server).overview)},
		{at(get, "/series", viewer), "Rates and times of the last minutes", handle((*Server).series)},
		{at(get, "/events", viewer), "Each new sample, and the overview when it has changed", stream((*Server).events)},

		{at(get, "/feeds", viewer), "All feeds", handle((*Server).feeds)},
		{at(post, "/feeds", admin), "Add a feed", handle((*Server).addFeed)},
		{at(get, "/feeds/{name}", viewer), "A feed with its lanes and relays, and what is wrong with its destination", handle((*Server).feed)},
		{at(del, "/feeds/{name}", admin), "Remove a feed and its deferred messages", handle((*Server).removeFeed)},
		{at(post, "/feeds/{name}/pause", operator), "Make relays carry nothing more of a feed", handle((*Server).pauseFeed)},
		{at(post, "/feeds/{name}/resume", operator), "Let relays carry a feed again", handle((*Server).resumeFeed)},
		{at(post, "/feeds/{name}/rewind", admin), "Make a feed begin anew at an earlier place", handle((*Server).rewindFeed)},
		{at(get, "/relays", viewer), "All relays", handle((*Server).relays)},

		{at(get, "/messages", viewer), "Messages of the log, newest first", handle((*Server).messages)},
		{at(get, "/messages/tail", viewer), "Messages as they are enqueued", stream((*Server).tail)},
		{at(get, "/messages/{id}", viewer), "The whole way of a message", handle((*Server).message)},

		{at(get, "/dead", viewer), "Deferred messages, oldest first", handle((*Server).dead)},
		{at(get, "/dead/count", viewer), "How many, by status", handle((*Server).deadCount)},
		{at(get, "/dead/groups", viewer), "The errors that most have in common", handle((*Server).deadGroups)},
		{
			Route{post, "/dead/act", operator, map[string]auth.Role{"discard": admin}}, "Retry, discard, park or skip messages",
			handle((*Server).deadAct),
		},
		{at(put, "/dead/{feed}/{id}", operator), "Change a dead or parked message, and send it", handle((*Server).deadEdit)},
		{at(get, "/keys", viewer), "Blocked keys, those blocked for longest first", handle((*Server).keys)},
		{at(post, "/keys/act", operator), "Decide about the message that blocks a key", handle((*Server).keyAct)},

		{at(get, "/consumers", viewer), "All consumers", handle((*Server).consumers)},
		{at(get, "/idempotency", viewer), "Idempotency keys, those that expire last first", handle((*Server).idempotency)},
		{at(get, "/sagas", viewer), "Sagas, those started last first", handle((*Server).sagas)},
		{at(get, "/sagas/count", viewer), "How many, by status", handle((*Server).sagaCount)},
		{at(get, "/sagas/{name}/{id}", viewer), "A saga with its steps", handle((*Server).saga)},
		{at(post, "/sagas/{name}/{id}/act", operator), "Retry, compensate or skip what does not go on", handle((*Server).sagaAct)},
		{at(get, "/reconcilers", viewer), "Reconcilers", handle((*Server).reconcilers)},
		{at(post, "/reconcilers/{job}/run", operator), "Run a reconciler now", handle((*Server).runReconciler)},

		{at(get, "/databases", viewer), "How the databases are", handle((*Server).vitals)},
		{at(get, "/doctor", viewer), "What a doctor finds; kept for 10 s", handleFor(checkupLimit, (*Server).checkup)},
		{at(get, "/audit", viewer), "What operators have done, newest first", handle((*Server).audit)},

		{at(get, "/replays", viewer), "Replays, newest first", handle((*Server).replays)},
		{at(post, "/replays", operator), "Send messages again", handle((*Server).startReplay)},
		{at(get, "/replays/{id}", viewer), "A replay", handle((*Server).replay)},
		{at(post, "/replays/{id}/pause", operator), "Stop handing messages to the relays", handle((*Server).pauseReplay)},
		{at(post, "/replays/{id}/resume", operator), "Go on with a replay", handle((*Server).resumeReplay)},
		{at(post, "/replays/{id}/cancel", operator), "End a replay", handle((*Server).cancelReplay)},
	}
}
