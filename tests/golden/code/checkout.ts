/* Copyright the checkout team. */

import { Injectable, type Logger } from "@nestjs/common";
import Stripe, { type Card as StripeCard } from "stripe";
import * as currency from "./currency";
import type { Cart } from "./cart";

export const MAX_ITEMS = 50;
const RETRY_AFTER: Record<string, number> = { timeout: 2, rate_limited: 5 };

/** What the shop shows after paying. */
export interface Receipt<T = unknown> {
  readonly id: string;
  total: number;
  details?: T;
  format(locale: string): string;
}

export type Outcome = { kind: "paid"; receipt: Receipt } | { kind: "refused"; code: 402 | 409 };

export enum PaymentState {
  Open = "open",
  Paid = "paid",
}

export class CheckoutError extends Error {
  constructor(readonly code: number) {
    super(`checkout failed with ${code}`);
  }
}

/**
 * Takes the money for a cart.
 */
@Injectable()
export class CheckoutService<C extends Cart> implements Disposable {
  private readonly attempts = new Map<string, number>();
  static currency = "EUR";

  constructor(private readonly stripe: Stripe, private readonly logger: Logger) {}

  /** Charges the card once. */
  @Traced("checkout")
  async charge(cart: C, card: StripeCard, ...tags: string[]): Promise<Outcome> {
    const amount = currency.toCents(cart.total);
    if (cart.items.length > MAX_ITEMS) {
      throw new CheckoutError(422);
    }
    this.logger.log("charging");
    const charge = await this.stripe.charges.create({ amount, source: card.id });
    return charge.paid ? { kind: "paid", receipt: toReceipt(charge) } : { kind: "refused", code: 402 };
  }

  get pending(): number {
    return this.attempts.size;
  }

  private readonly onTimeout = (id: string): void => {
    this.attempts.set(id, (this.attempts.get(id) ?? 0) + 1);
  };

  [Symbol.dispose]() {
    this.attempts.clear();
  }
}

export const toReceipt = (charge: Stripe.Charge, total = charge.amount): Receipt => ({
  id: charge.id,
  total,
  format: (locale) => new Intl.NumberFormat(locale).format(total),
});

export default async function retry<T>(work: () => Promise<T>, times: number): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= times) throw error;
    }
  }
}

export namespace Fees {
  export const PERCENT = 1.5;

  export function of(amount: number): number {
    return Math.round(amount * PERCENT) / 100;
  }
}
