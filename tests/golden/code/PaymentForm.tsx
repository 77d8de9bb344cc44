import React, { useState } from "react";
import { charge } from "./api";
import type { Money } from "./money";

type Props = { total: Money; onPaid?: (id: string) => void };

const LABELS = { pay: "Pay now", again: "Try again" } as const;

/** The form below the cart. */
export const PaymentForm: React.FC<Props> = ({ total, onPaid }) => {
  const [busy, setBusy] = useState(false);

  async function submit(event: React.FormEvent): Promise<void> {
    event.preventDefault();
    setBusy(true);
    try {
      onPaid?.(await charge(total));
    } finally {
      setBusy(false);
    }
  }

  return (
    <form onSubmit={submit}>
      <Amount value={total} />
      <button disabled={busy}>{busy ? "…" : LABELS.pay}</button>
    </form>
  );
};

function Amount<T extends Money>({ value }: { value: T }): JSX.Element {
  return <output>{value.cents / 100} €</output>;
}

export class Boundary extends React.Component<{ children: React.ReactNode }> {
  state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  render() {
    return this.state.failed ? <p>{LABELS.again}</p> : this.props.children;
  }
}
