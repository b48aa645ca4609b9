// Reads a group's committed offsets with franz-go or Sarama while the group's coordinator moves.
//
// Usage: go_clients LIBRARY member|monitor SERVERS GROUP TOPIC. It prints "move" when the coordinator
// is to move, waits for a line on its input, and prints "=" and what it has read.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const limit = 60 * time.Second

var (
	input = bufio.NewReader(os.Stdin)
	once  sync.Once
)

func move() {
	once.Do(func() {
		fmt.Println("move")
		_, _ = input.ReadString('\n')
	})
}

type program func(servers, group, topic string) (string, error)

func main() {
	programs := map[string]program{
		"franz-go member":  franzMember,
		"franz-go monitor": franzMonitor,
		"sarama member":    saramaMember,
		"sarama monitor":   saramaMonitor,
	}
	run := programs[os.Args[1]+" "+os.Args[2]]
	result, err := run(os.Args[3], os.Args[4], os.Args[5])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("=" + result)
}

func franzMember(servers, group, topic string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { move() }),
	)
	if err != nil {
		return "", err
	}
	defer client.Close()
	for ctx.Err() == nil {
		if records := client.PollFetches(ctx).Records(); len(records) > 0 {
			return string(records[0].Value), nil
		}
	}
	return "", ctx.Err()
}

func franzMonitor(servers, group, topic string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(servers, ",")...))
	if err != nil {
		return "", err
	}
	defer client.Close()
	return twice(func() (int64, error) {
		found, err := kadm.NewClient(client).FetchOffsets(ctx, group)
		if err != nil {
			return 0, err
		}
		offset, isThere := found.Lookup(topic, 0)
		if !isThere {
			return 0, errors.New("no offset")
		}
		return offset.At, offset.Err
	})
}

func saramaMember(servers, group, topic string) (string, error) {
	client, err := sarama.NewClient(strings.Split(servers, ","), saramaConfig())
	if err != nil {
		return "", err
	}
	defer client.Close()
	manager, err := sarama.NewOffsetManagerFromClient(group, client)
	if err != nil {
		return "", err
	}
	defer manager.Close()
	// The manager keeps the coordinator of its first request.
	if err := closeWhenManaged(manager, topic); err != nil {
		return "", err
	}
	move()
	managed, err := manager.ManagePartition(topic, 0)
	if err != nil {
		return "", err
	}
	defer managed.Close()
	offset, _ := managed.NextOffset()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return "", err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, offset)
	if err != nil {
		return "", err
	}
	defer partition.Close()
	select {
	case message := <-partition.Messages():
		return string(message.Value), nil
	case <-time.After(limit):
		return "", errors.New("nothing was read")
	}
}

func closeWhenManaged(manager sarama.OffsetManager, topic string) error {
	managed, err := manager.ManagePartition(topic, 0)
	if err != nil {
		return err
	}
	return managed.Close()
}

func saramaMonitor(servers, group, topic string) (string, error) {
	admin, err := sarama.NewClusterAdmin(strings.Split(servers, ","), saramaConfig())
	if err != nil {
		return "", err
	}
	defer admin.Close()
	return twice(func() (int64, error) {
		found, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
		if err != nil {
			return 0, err
		}
		if found.Err != sarama.ErrNoError {
			return 0, found.Err
		}
		block := found.GetBlock(topic, 0)
		if block == nil || block.Err != sarama.ErrNoError {
			return 0, fmt.Errorf("no offset: %v", block)
		}
		return block.Offset, nil
	})
}

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	return config
}

// twice reads an offset before and after the move, and returns it.
func twice(read func() (int64, error)) (string, error) {
	if _, err := read(); err != nil {
		return "", err
	}
	move()
	offset, err := read()
	if err != nil {
		return "", err
	}
	return fmt.Sprint(offset), nil
}
