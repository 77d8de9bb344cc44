using System;
using System.Net;
using System.Net.Http;
using System.Net.Http.Json;
using System.Text.Json.Serialization;
using System.Threading;
using System.Threading.Tasks;

namespace HeronPay;

/// <summary>A refund as the API shows it. Amounts are minor units.</summary>
public sealed record Refund(
    [property: JsonPropertyName("id")] string Id,
    [property: JsonPropertyName("payment_id")] string PaymentId,
    [property: JsonPropertyName("amount")] long Amount,
    [property: JsonPropertyName("state")] string State);

public sealed class RefundRefusedException(string code, string message) : Exception(message)
{
    public string Code { get; } = code;
}

/// <summary>Creates refunds. The <see cref="HttpClient"/> carries base address and API key.</summary>
public sealed class RefundClient
{
    private readonly HttpClient _http;

    public RefundClient(HttpClient http)
    {
        _http = http ?? throw new ArgumentNullException(nameof(http));
    }

    /// <summary>Refunds a part of a payment, or all of it when <paramref name="amount"/> is null.</summary>
    /// <exception cref="RefundRefusedException">The window has closed, or more was asked for than is left.</exception>
    public async Task<Refund> CreateAsync(
        string paymentId, long? amount, string idempotencyKey, CancellationToken cancel = default)
    {
        using var request = new HttpRequestMessage(HttpMethod.Post, $"payments/{paymentId}/refunds")
        {
            Content = JsonContent.Create(new { amount }),
        };
        request.Headers.Add("Idempotency-Key", idempotencyKey);

        using var response = await _http.SendAsync(request, cancel).ConfigureAwait(false);
        if (response.StatusCode == HttpStatusCode.UnprocessableEntity)
        {
            var body = await response.Content.ReadFromJsonAsync<ErrorBody>(cancel).ConfigureAwait(false);
            throw new RefundRefusedException(body?.Error.Code ?? "unknown", body?.Error.Message ?? "refund refused");
        }
        response.EnsureSuccessStatusCode();
        var refund = await response.Content.ReadFromJsonAsync<Refund>(cancel).ConfigureAwait(false);
        return refund ?? throw new InvalidOperationException("empty answer from Heron Pay");
    }

    private sealed record ErrorBody([property: JsonPropertyName("error")] ErrorDetail Error);

    private sealed record ErrorDetail(
        [property: JsonPropertyName("code")] string Code,
        [property: JsonPropertyName("message")] string Message);
}
