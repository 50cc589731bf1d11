package kafka_test

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/aws"

	"github.com/postrider/postrider/broker/kafka"
)

// Credentials that change, such as those of an instance's role, are provided by a function of the
// program.
func ExampleConfig_options() {
	credentials := func(context.Context) (aws.Auth, error) {
		return aws.Auth{AccessKey: "key", SecretKey: "secret", SessionToken: "token"}, nil
	}
	p, err := kafka.NewPublisher(kafka.Config{
		URL:     "kafkas://b-1.shop.kafka.eu-central-1.amazonaws.com:9098",
		Options: []kgo.Opt{kgo.SASL(aws.ManagedStreamingIAM(credentials)), kgo.Rack("euc1-az1")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	_, err = kafka.NewPublisher(kafka.Config{
		URL: "kafka://localhost", Options: []kgo.Opt{kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()},
	})
	fmt.Println(err)
	// Output:
	// kafka: option RequiredAcks cannot be set: a message counts as confirmed when all replicas in sync have it
	// option DisableIdempotentWrite cannot be set: retries inside the client would repeat messages and change their order
}
