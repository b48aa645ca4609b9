// Writes one invoice for each order, exactly once, with franz-go.
package main

import (
	"context"
	"log"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	name := "invoicing-" + os.Args[1]
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(os.Getenv("KAFKA_BOOTSTRAP_SERVERS"), ",")...),
		kgo.TransactionalID(name),
		kgo.TransactionTimeout(10*time.Second),
		kgo.ConsumerGroup("invoicing"),
		kgo.InstanceID(name), // a restarted instance gets its partitions at once
		kgo.SessionTimeout(6*time.Second),
		kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.DefaultProduceTopic("invoices"),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for {
		if err := invoice(session); err != nil {
			session.Close() // leaves the group; a supervisor starts the program again
			log.Fatal(err)
		}
	}
}

// invoice commits the invoices of a batch together with its offsets.
func invoice(session *kgo.GroupTransactSession) error {
	wait, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	orders := session.PollRecords(wait, 50).Records()
	if len(orders) == 0 {
		return nil
	}
	if err := session.Begin(); err != nil {
		return err
	}
	ctx := context.Background()
	written := kgo.AbortingFirstErrPromise(session.Client())
	for _, order := range orders {
		invoice := &kgo.Record{Key: order.Key, Value: order.Value, Headers: order.Headers}
		session.Produce(ctx, invoice, written.Promise())
	}
	failed := written.Err()
	// End aborts if the group has rebalanced, and goes back to the committed offsets.
	_, err := session.End(ctx, failed == nil)
	return err
}
