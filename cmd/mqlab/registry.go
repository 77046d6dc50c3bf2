package main

import (
	"context"

	"mqlab/brokers"
	"mqlab/brokers/kafka"
	kafkaembedded "mqlab/brokers/kafka/embedded"
	"mqlab/brokers/pulsar"
	pulsarembedded "mqlab/brokers/pulsar/embedded"
	"mqlab/brokers/rabbitmq"
	"mqlab/brokers/rabbitmq/embedded"
	"mqlab/brokers/rocketmq"
	rocketmqembedded "mqlab/brokers/rocketmq/embedded"
)

// product is everything that main knows of a broker: one line each.
type product struct {
	driver brokers.Driver
	client string // the client library's module
	// standIn serves the broker's protocol until ctx ends.
	standIn func(ctx context.Context, o standInOptions) (standIn, error)
	// lacks is what the stand-in cannot do though the product can.
	lacks []brokers.Capability
}

// standInOptions are what a stand-in may need to come back after a kill.
type standInOptions struct {
	dir  string // for what it keeps
	port int    // to listen on; 0: a free one
}

// standIn is a running embedded server.
type standIn interface {
	URL() string
	Close() error
}

func products() []product {
	return []product{
		{rabbitmq.Driver{}, "github.com/rabbitmq/amqp091-go", func(ctx context.Context, _ standInOptions) (standIn, error) {
			return embedded.Open(ctx, embedded.Options{})
		}, []brokers.Capability{brokers.Durable, brokers.Quorum}},
		{kafka.Driver{}, "github.com/twmb/franz-go", func(ctx context.Context, o standInOptions) (standIn, error) {
			return kafkaembedded.Open(ctx, kafkaembedded.Options{Dir: o.dir, Port: o.port})
		}, []brokers.Capability{brokers.Quorum}},
		{rocketmq.Driver{}, "github.com/apache/rocketmq-client-go/v2", func(ctx context.Context, _ standInOptions) (standIn, error) {
			return rocketmqembedded.Open(ctx, rocketmqembedded.Options{})
		}, []brokers.Capability{brokers.Durable, brokers.Quorum}},
		{pulsar.Driver{}, "github.com/apache/pulsar-client-go", func(ctx context.Context, _ standInOptions) (standIn, error) {
			return pulsarembedded.Open(ctx, pulsarembedded.Options{})
		}, []brokers.Capability{brokers.Durable, brokers.Quorum}},
	}
}

func registry() *brokers.Registry {
	var ds []brokers.Driver
	for _, p := range products() {
		ds = append(ds, p.driver)
	}
	return brokers.NewRegistry(ds...)
}

func productNamed(name string) (product, bool) {
	for _, p := range products() {
		if p.driver.Name() == name {
			return p, true
		}
	}
	return product{}, false
}

// lacks is what a product's stand-in cannot do.
func lacks(name string) []brokers.Capability {
	p, _ := productNamed(name)
	return p.lacks
}
