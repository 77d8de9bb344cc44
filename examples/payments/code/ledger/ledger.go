// Package ledger keeps the books of Heron Pay: double entry, append only.
//
// A transaction is a set of postings that add up to zero per currency. Nothing is ever updated or
// deleted; a mistake is corrected by a reversing transaction that names the one it reverses.
package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// maxAttempts bounds how often a transaction is tried again after a serialization failure in PostgreSQL.
const maxAttempts = 3

// ErrUnbalanced is returned for postings that do not add up to zero in every currency.
var ErrUnbalanced = errors.New("ledger: postings do not balance")

// Posting moves an amount in minor units into an account; a negative amount moves it out.
type Posting struct {
	Account  string
	Currency string
	Amount   int64
}

// Transaction is what the payments service asks the ledger to book.
type Transaction struct {
	ID       string
	Reverses string
	BookedAt time.Time
	Postings []Posting
}

// Ledger writes to one PostgreSQL database.
type Ledger struct {
	db *sql.DB
}

// New returns a ledger on an open database.
func New(db *sql.DB) *Ledger {
	return &Ledger{db: db}
}

// Balanced reports whether the postings cancel out in every currency.
func Balanced(postings []Posting) bool {
	sums := make(map[string]int64)
	for _, p := range postings {
		sums[p.Currency] += p.Amount
	}
	for _, sum := range sums {
		if sum != 0 {
			return false
		}
	}
	return len(postings) > 0
}

// Post books a transaction once, however often it is called with the same ID.
func (l *Ledger) Post(ctx context.Context, t Transaction) error {
	if !Balanced(t.Postings) {
		return fmt.Errorf("%w: transaction %s", ErrUnbalanced, t.ID)
	}
	var err error
	for attempt := 0; attempt < maxAttempts; attempt++ {
		if err = l.post(ctx, t); !isSerializationFailure(err) {
			return err
		}
	}
	return fmt.Errorf("ledger: transaction %s gave up after %d attempts: %w", t.ID, maxAttempts, err)
}

func (l *Ledger) post(ctx context.Context, t Transaction) error {
	tx, err := l.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	result, err := tx.ExecContext(ctx,
		"insert into transactions (id, reverses, booked_at) values ($1, nullif($2, ''), $3) on conflict do nothing",
		t.ID, t.Reverses, t.BookedAt)
	if err != nil {
		return err
	}
	if inserted, err := result.RowsAffected(); err != nil || inserted == 0 {
		return err
	}
	for _, p := range t.Postings {
		if _, err := tx.ExecContext(ctx,
			"insert into postings (transaction_id, account, currency, amount) values ($1, $2, $3, $4)",
			t.ID, p.Account, p.Currency, p.Amount); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func isSerializationFailure(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "40001"
}
