/**
 * Heron Pay for TypeScript. Server side only: a secret key in a browser is a secret no more.
 */

export type Currency = "EUR" | "USD" | "GBP" | "JPY" | "SEK";

export interface PaymentParams {
  /** Minor units: 1999 is 19.99 EUR and 1,999 JPY. */
  amount: number;
  currency?: Currency;
  cardToken?: string;
  reference?: string;
}

export interface Payment {
  id: string;
  amount: number;
  currency: Currency;
  state: "authorized" | "captured" | "settled" | "refunded" | "failed";
  authorized_at: string;
}

interface ErrorBody {
  error: { code: string; message: string; field: string | null };
}

/** The payment is not possible as requested (HTTP 422); `field` says what to correct. */
export class PaymentRefusedError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly field: string | null,
  ) {
    super(message);
    this.name = "PaymentRefusedError";
  }
}

export class HeronPay {
  static readonly apiVersion = "v2.1";

  constructor(
    private readonly secretKey: string,
    private readonly merchantId: string,
    private readonly baseUrl = "https://api.heronpay.example",
    private readonly timeoutMs = 35_000,
  ) {
    if (typeof window !== "undefined") {
      throw new Error("HeronPay must run on a server; use the checkout sheet in browsers");
    }
  }

  /** Creates a payment. Pass the same `idempotencyKey` when you try again after a network error. */
  async createPayment(params: PaymentParams, idempotencyKey: string): Promise<Payment> {
    const response = await fetch(`${this.baseUrl}/payments`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${this.secretKey}`,
        "Content-Type": "application/json",
        "Idempotency-Key": idempotencyKey,
      },
      body: JSON.stringify({
        amount: params.amount,
        currency: params.currency,
        card_token: params.cardToken,
        reference: params.reference ?? "",
        merchant_id: this.merchantId,
      }),
      signal: AbortSignal.timeout(this.timeoutMs),
    });
    if (response.status === 422) {
      const { error } = (await response.json()) as ErrorBody;
      throw new PaymentRefusedError(error.code, error.message, error.field);
    }
    if (!response.ok) {
      throw new Error(`Heron Pay answered ${response.status}; try again with the same idempotency key`);
    }
    return (await response.json()) as Payment;
  }
}
