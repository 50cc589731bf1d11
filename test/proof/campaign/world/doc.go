// Package world runs everything that a fault campaign needs on one machine: PostgreSQL with a
// synchronous standby, PgBouncer, Kafka, a cluster of three NATS servers, RabbitMQ, Redis, relays as
// processes of the real postrider binary, and our own proxies between all of them.
//
//	w, err := world.Start(ctx, world.Options{Dir: dir, Postgres: "15", Postrider: binary})   // servers, proxies, schema
//	// make queues, topics and streams at w.Broker(destination)
//	err = w.StartRelays(ctx)
//	p, err := w.Spawn(world.Program{Name: "producer1", Role: world.Producer, Path: os.Args[0], Args: …})
//	defer w.Stop(ctx)
//
// Producers and consumers reach the database at [World.ProducerDSN], [World.PooledDSN] and
// [World.ConsumerDSN]. These go through proxies, whose addresses stay the same over a failover.
// [World.AdminDSN] goes through a proxy that no fault touches; it follows the primary too.
//
// All servers are separate instances of dev/services, named after Options.Instance. Only one world
// per instance can run at a time. Start first removes what a killed harness of the same instance left
// behind: processes, mounts and network namespaces.
package world
