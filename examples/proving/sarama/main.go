// Writes one invoice for each order, exactly once, with Sarama.
//
// Sarama sends no member of the group with its offsets. So a transactional ID belongs to a partition
// of the orders: a new owner of the partition fences the previous one, and then reads the offset.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

const group = "invoicing"

var servers = strings.Split(os.Getenv("KAFKA_BOOTSTRAP_SERVERS"), ",")

func config(transactionalID string) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Net.MaxOpenRequests = 1
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	config.Consumer.Group.Heartbeat.Interval = time.Second
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	if transactionalID != "" {
		config.Producer.Idempotent = true
		config.Producer.Transaction.ID = transactionalID
		config.Producer.Transaction.Timeout = 10 * time.Second
	}
	return config
}

type invoicing struct{}

func (invoicing) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (invoicing) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (invoicing) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	id := fmt.Sprintf("%s-%d", group, claim.Partition())
	producer, err := sarama.NewSyncProducer(servers, config(id)) // fences the previous owner
	if err != nil {
		log.Fatal(err)
	}
	defer producer.Close()
	next := committed(claim)
	for order := range claim.Messages() {
		batch := []*sarama.ConsumerMessage{order}
		for len(claim.Messages()) > 0 && len(batch) < 50 {
			batch = append(batch, <-claim.Messages())
		}
		for len(batch) > 0 && batch[0].Offset < next {
			batch = batch[1:] // the previous owner has committed it meanwhile
		}
		if len(batch) == 0 {
			continue
		}
		if err := invoice(producer, batch); err != nil {
			log.Fatal(err) // a supervisor starts the program again
		}
	}
	return nil
}

// invoice commits the invoices of a batch together with its offset.
func invoice(producer sarama.SyncProducer, batch []*sarama.ConsumerMessage) error {
	if err := producer.BeginTxn(); err != nil {
		return err
	}
	var invoices []*sarama.ProducerMessage
	for _, order := range batch {
		invoices = append(invoices, &sarama.ProducerMessage{
			Topic: "invoices",
			Key:   sarama.ByteEncoder(order.Key),
			Value: sarama.ByteEncoder(order.Value),
		})
	}
	if err := producer.SendMessages(invoices); err != nil {
		return err
	}
	last := batch[len(batch)-1]
	next := &sarama.PartitionOffsetMetadata{Partition: last.Partition, Offset: last.Offset + 1}
	offsets := map[string][]*sarama.PartitionOffsetMetadata{last.Topic: {next}}
	if err := producer.AddOffsetsToTxn(offsets, group); err != nil {
		return err
	}
	return producer.CommitTxn()
}

// committed returns the offset that the group has committed, or -1.
func committed(claim sarama.ConsumerGroupClaim) int64 {
	admin, err := sarama.NewClusterAdmin(servers, config(""))
	if err != nil {
		log.Fatal(err)
	}
	defer admin.Close()
	asked := map[string][]int32{claim.Topic(): {claim.Partition()}}
	found, err := admin.ListConsumerGroupOffsets(group, asked)
	if err != nil {
		log.Fatal(err)
	}
	block := found.GetBlock(claim.Topic(), claim.Partition())
	if block.Err != sarama.ErrNoError {
		log.Fatal(block.Err)
	}
	return block.Offset
}

func main() {
	orders, err := sarama.NewConsumerGroup(servers, group, config(""))
	if err != nil {
		log.Fatal(err)
	}
	for {
		if err := orders.Consume(context.Background(), []string{"orders"}, invoicing{}); err != nil {
			log.Fatal(err)
		}
	}
}
