package main

import (
	"context"

	"mqlab/brokers"
	"mqlab/brokers/rabbitmq"
	"mqlab/brokers/rabbitmq/embedded"
)

// product is everything that main knows of a broker: one line each.
type product struct {
	driver brokers.Driver
	client string // the client library's module
	// standIn serves the broker's protocol until ctx ends.
	standIn func(ctx context.Context) (standIn, error)
}

// standIn is a running embedded server.
type standIn interface {
	URL() string
	Close() error
}

func products() []product {
	return []product{
		{rabbitmq.Driver{}, "github.com/rabbitmq/amqp091-go", func(ctx context.Context) (standIn, error) { return embedded.Open(ctx, embedded.Options{}) }},
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
