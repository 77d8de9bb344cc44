/*
 * Copyright the payments team.
 */
package com.example.payments;

import java.time.Duration;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import static java.util.Objects.requireNonNull;

import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;

/**
 * Answers what the shop asks about payments.
 */
@RestController
@RequestMapping("/payments")
public class PaymentController<T extends Payment> extends BaseController implements AutoCloseable {

    private static final Duration TIMEOUT = Duration.ofSeconds(5);
    private final PaymentService<T> service;

    static {
        System.setProperty("payments.mode", "live");
    }

    public PaymentController(PaymentService<T> service) {
        this.service = requireNonNull(service);
    }

    /** Takes a payment; 422 when the amount is not positive. */
    @PostMapping
    public CompletableFuture<Map<String, List<T>>> pay(@RequestBody final T payment, String... tags) throws PaymentException {
        if (payment.cents() <= 0) {
            throw new PaymentException(422);
        }
        return service.submit(payment).orTimeout(TIMEOUT.toMillis(), java.util.concurrent.TimeUnit.MILLISECONDS);
    }

    @Override
    public void close() {
        Runnable stop = new Runnable() {
            @Override
            public void run() {
                service.stop();
            }
        };
        stop.run();
    }

    // Counted by the health check.
    private int attempts = 0;

    <R> R[] all(R[] empty) { return empty; }

    /** What a payment can be. */
    public enum State {
        OPEN, PAID, REFUNDED;

        boolean isFinal() {
            return this != OPEN;
        }
    }

    public record Receipt(String id, long cents) {
        public Receipt {
            requireNonNull(id);
        }

        public String text() {
            return id + ": " + cents;
        }
    }
}

@FunctionalInterface
interface Fee<A> {
    long of(A amount);

    default long twice(A amount) {
        return 2 * of(amount);
    }
}

@interface Audited {
    String value() default "payment";
}
