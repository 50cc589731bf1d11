// Package points kills, cuts, deafens and delays at every single statement and every single call of a broker that relays, inboxes,
// sagas and replays make, one after the other, and holds that nothing is lost, nothing happens twice, and the order is kept.
//
// A point is the n-th call of a name in a scenario, such as the second COMMIT of an inbox. What runs is the product itself, in a
// process of its own, on real servers; only its connections are watched, by package tap. testdata/points.txt lists all points:
// one that is not hit, or is not listed, fails the test, and so does a statement in the sources that no scenario knows.
//
//	go test ./points              every scenario, and some points in all ways
//	POSTRIDER_LONG=1 go test …    every point in all ways (make points)
//	go test ./points -update      write testdata/points.txt anew
package points
