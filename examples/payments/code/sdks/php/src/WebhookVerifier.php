<?php

declare(strict_types=1);

namespace HeronPay;

use InvalidArgumentException;

/**
 * Checks the signature of webhooks. Use php://input for the body; $_POST has lost the bytes that were signed.
 */
final class WebhookVerifier
{
    private const TOLERANCE_SECONDS = 300;

    /** @param list<string> $secrets the current secret, and the one before while you rotate */
    public function __construct(private readonly array $secrets)
    {
        if ($secrets === []) {
            throw new InvalidArgumentException('at least one webhook secret is needed');
        }
    }

    /**
     * @return array<string, mixed> the event
     *
     * @throws SignatureException when the event is forged, too old or unsigned
     */
    public function verify(string $body, string $header, ?int $now = null): array
    {
        [$timestamp, $signatures] = $this->parse($header);
        if (abs(($now ?? time()) - $timestamp) > self::TOLERANCE_SECONDS) {
            throw new SignatureException('the webhook is too old or the clock of this machine is wrong');
        }
        foreach ($this->secrets as $secret) {
            $expected = hash_hmac('sha256', $timestamp . '.' . $body, $secret);
            foreach ($signatures as $signature) {
                if (hash_equals($expected, $signature)) {
                    return json_decode($body, true, 64, JSON_THROW_ON_ERROR);
                }
            }
        }
        throw new SignatureException('no signature matches');
    }

    /** @return array{int, list<string>} */
    private function parse(string $header): array
    {
        $timestamp = 0;
        $signatures = [];
        foreach (explode(',', $header) as $part) {
            [$name, $value] = array_pad(explode('=', $part, 2), 2, '');
            if ($name === 't') {
                $timestamp = (int) $value;
            } elseif ($name === 'v1') {
                $signatures[] = $value;
            }
        }

        return [$timestamp, $signatures];
    }
}
