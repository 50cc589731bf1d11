// Package saga runs work that takes several transactions, and undoes the completed steps if it
// cannot be finished.
//
// A saga is declared once, each step beside its compensation:
//
//	booking, err := saga.New(store, "book-trip",
//	    saga.Step("hotel", reserveHotel, cancelHotel),
//	    saga.Step("flight", reserveFlight, cancelFlight).Timeout(10*time.Second),
//	    saga.Wait("approval", approve, nil).Within(24*time.Hour),
//	    saga.Step("payment", charge, refund))
//
// Its state is stored in the application's database. [Saga.Start] takes the transaction that the
// application already has. A step runs in one transaction with the record that it was done and with
// the messages that it enqueues. A crash rolls back all of that or none, so no step takes effect
// twice. A [Runner] runs the steps that are due; any number of processes can have one.
//
// For work that need not survive a crash of the process there is [Run], without a database.
package saga
