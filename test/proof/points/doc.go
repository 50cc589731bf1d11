// Package points injects faults at every single statement and broker call of relays, inboxes, sagas
// and replays: it kills the process, cuts the connection, drops the response or delays it. After each
// fault it checks that no message was lost, processed twice or reordered.
//
// A point is the n-th call of a name in a scenario, such as the second COMMIT of an inbox. The product
// itself runs, in a process of its own, against real servers; package tap only watches its
// connections. testdata/points.txt lists all points. The test fails for a point that is not hit or not
// listed, and for a statement in the sources that no scenario executes.
//
//	go test ./proof/points              every scenario, and some points with all faults
//	POSTRIDER_LONG=1 go test …          every point with all faults (make points)
//	go test ./proof/points -update      regenerate testdata/points.txt
package points
