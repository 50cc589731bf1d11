// Package world is everything real that a fault campaign needs, on one machine: PostgreSQL with a synchronous standby, PgBouncer, Kafka, a cluster
// of three NATS servers, RabbitMQ, Redis, relays that are processes of the real postrider binary, and our own proxies between all of them.
//
//	w, err := world.Start(ctx, world.Options{Dir: dir, Postgres: "15", Postrider: binary})   // servers, proxies, schema
//	// make queues, topics and streams at w.Broker(destination)
//	err = w.StartRelays(ctx)
//	p, err := w.Spawn(world.Program{Name: "producer1", Role: world.Producer, Path: os.Args[0], Args: …})
//	defer w.Stop(ctx)
//
// Whoever writes or consumes finds the database at [World.ProducerDSN], [World.PooledDSN] and [World.ConsumerDSN]: these go through proxies, whose
// addresses stay the same over a failover. [World.AdminDSN] goes through a proxy that no fault touches, and follows the primary too.
//
// All servers are instances of dev/services of their own, named after Options.Instance. One world of an instance can run at a time. What a harness
// leaves behind when it is killed, the next Start of the same instance removes: processes, mounts, network namespaces.
package world
