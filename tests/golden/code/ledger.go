// Package ledger books payments twice.
package ledger

import (
	"context"
	"errors"
	"fmt"

	pg "github.com/jackc/pgx/v5"
	"gopkg.in/yaml.v3"
)

// MaxEntries is what fits into one booking.
const MaxEntries = 64

var (
	// ErrUnbalanced says that debit and credit differ.
	ErrUnbalanced = errors.New("ledger: unbalanced")
	ErrClosed     = errors.New("ledger: closed")
)

// Entry is one line of a booking.
type Entry struct {
	Account string `json:"account"`
	Cents   int64  `json:"cents"`
}

// Store keeps bookings.
type Store interface {
	Save(ctx context.Context, entries []Entry) error
	Close() error
}

type (
	AccountID string
	Balance   map[AccountID]int64
)

// Ledger books into a store.
type Ledger[S Store] struct {
	store S
	open  bool
}

// New opens a ledger.
func New[S Store](store S, options ...func(*Ledger[S])) *Ledger[S] {
	ledger := &Ledger[S]{store: store, open: true}
	for _, option := range options {
		option(ledger)
	}
	return ledger
}

// Book saves entries that balance.
//
// It answers ErrUnbalanced when they do not.
func (l *Ledger[S]) Book(ctx context.Context, from, to string, cents int64) (int, error) {
	entries := []Entry{{from, -cents}, {to, cents}}
	if sum(entries) != 0 {
		return 0, fmt.Errorf("booking %s: %w", from, ErrUnbalanced)
	}
	return len(entries), l.store.Save(ctx, entries)
}

func (Balance) Empty() bool { return false }

func sum(entries []Entry) (total int64) {
	for _, entry := range entries {
		total += entry.Cents
	}
	return
}

func Load(raw []byte, _ *pg.Conn) error {
	var balance Balance
	return yaml.Unmarshal(raw, &balance)
}
