using System;
using System.Collections.Generic;
using System.Threading.Tasks;
using Money = Payments.Core.Amount;

namespace Payments.Payouts;

/// <summary>Why a payout failed.</summary>
public enum PayoutFailure
{
    UnknownAccount = 404,
    Refused = 409,
}

public record Payout(string Account, Money Amount);

public delegate void PayoutHandler(Payout payout, DateTime at);

public interface IBank<in T> where T : Payout
{
    Task<bool> SendAsync(T payout, int retries = 3);
}

/// <summary>
/// Pays merchants once a day.
/// </summary>
[Service(Lifetime = "scoped")]
public sealed class PayoutService<T> : IDisposable where T : Payout
{
    private const int BatchSize = 100;
    private readonly IBank<T> _bank;
    public event PayoutHandler? Paid;

    public int Pending { get; private set; }

    public PayoutService(IBank<T> bank) : base()
    {
        _bank = bank ?? throw new ArgumentNullException(nameof(bank));
    }

    /// <summary>Sends everything that is due.</summary>
    [Obsolete("use SendDueAsync")]
    public async Task<IReadOnlyList<T>> SendAsync(IEnumerable<T> due, params string[] tags)
    {
        var sent = new List<T>();
        foreach (var payout in due)
        {
            if (await _bank.SendAsync(payout))
            {
                sent.Add(payout);
                Paid?.Invoke(payout, DateTime.UtcNow);
            }
        }
        return sent;
    }

    public Money Total(Payout a, Payout b) => a.Amount + b.Amount;

    public static bool operator ==(PayoutService<T> left, PayoutService<T> right) => left.Equals(right);

    public T? this[int index] => default;

    #region lifecycle
    public void Dispose()
    {
        Paid = null;
    }

    ~PayoutService() { Dispose(); }
    #endregion

    private struct Window
    {
        public DateTime From, To;

        public TimeSpan Length() { return To - From; }
    }
}

internal static class PayoutExtensions
{
    public static string Describe(this Payout payout) => $"{payout.Account}: {payout.Amount}";
}
