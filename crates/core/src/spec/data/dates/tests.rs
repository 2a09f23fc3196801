use super::*;

fn iso(format: &str, text: &str) -> Option<String> {
    DateFormat::new(format).unwrap().iso(text)
}

#[test]
fn dates_of_many_countries_become_iso() {
    for (format, text, expected) in [
        ("%Y/%m/%d", "2012/01/02", "2012-01-02"),
        ("%Y/%m/%d", "2012/1/2", "2012-01-02"),
        ("%d.%m.%Y", "01.02.2012", "2012-02-01"),
        ("%m/%d/%Y", "01/02/2012", "2012-01-02"),
        ("%m/%d/%y", "12/31/99", "1999-12-31"),
        ("%d.%m.%y", "1.2.05", "2005-02-01"),
        ("%b %d, %Y %H:%M", "Jan 5, 2012 13:00", "2012-01-05T13:00"),
        ("%B %d, %Y", "September 9, 2020", "2020-09-09"),
        ("%d %b. %Y", "9 Sept. 2020", ""),
        ("%d %b %Y", "9 Sept. 2020", "2020-09-09"),
        (
            "%a, %d %b %Y %T %z",
            "Thu, 05 Jan 2012 13:00:09 +0200",
            "2012-01-05T11:00:09Z",
        ),
        ("%Y%m%d", "20240229", "2024-02-29"),
        ("%Y%m%d%H%M%S", "20240229235960", "2024-02-29T23:59:60"),
        ("%Y-%j", "2023-365", "2023-12-31"),
        (
            "%d/%m/%Y %I:%M %p",
            "31/12/2011 12:05 am",
            "2011-12-31T00:05",
        ),
        ("%d/%m/%Y %I:%M%p", "31/12/2011 1:05PM", "2011-12-31T13:05"),
        (
            "%F %H:%M:%S.%f",
            "2012-01-05 13:00:00.25",
            "2012-01-05T13:00:00.250000000",
        ),
        ("%Y/%m", "2012/11", "2012-11-01"),
        (
            "%d.%m.%Y %H:%M %z",
            "01.01.2000 00:30 +01:00",
            "1999-12-31T23:30Z",
        ),
    ] {
        let found = iso(format, text).unwrap_or_default();
        assert_eq!(found, expected, "{format} {text}");
    }
}

#[test]
fn what_is_not_such_a_date_is_none() {
    for (format, text) in [
        ("%Y/%m/%d", "2012-01-02"),
        ("%Y/%m/%d", "12/01/02"),
        ("%Y/%m/%d", "2012/02/30"),
        ("%Y/%m/%d", "2012/13/01"),
        ("%Y/%m/%d", "2012/01/02 10:00"),
        ("%Y-%j", "2023-366"),
        ("%Y%m%d", "2024123"),
        ("%b %d, %Y", "Foo 1, 2012"),
        ("%m/%d/%Y", "31/12/2011"),
        ("%d.%m.%Y", ""),
        ("%d.%m.%Y", "ä.ö.ü"),
        ("%d/%m/%Y %I:%M %p", "31/12/2011 13:05 pm"),
    ] {
        assert_eq!(iso(format, text), None, "{format} {text}");
    }
}

#[test]
fn wrong_formats_say_why() {
    for (format, reason) in [
        ("yyyy-mm-dd", "it has no year (`%Y`)"),
        ("%Y", "it has no month (`%m` or `%b`)"),
        ("%Y-%m-%q", "`%q` is not a date directive"),
        ("%Y-%m-%d %I:%M", "`%I` and `%p` go together"),
        ("%Y-%m-%Y", "it contains a part of the date twice"),
        ("%Y-%m-%d %M", "it has minutes without hours"),
        ("%Y-%m-%d%", "it ends in a single `%`"),
    ] {
        assert_eq!(DateFormat::new(format).unwrap_err().0, reason, "{format}");
    }
    assert!(DateFormat::new("%Y%m%d").unwrap().is_all_digits());
    assert!(!DateFormat::new("%Y%b%d").unwrap().is_all_digits());
}

#[test]
fn days_and_dates_are_each_others_inverse() {
    for days in (-200_000..200_000).step_by(37) {
        let date = date_of(days);
        let parts: Vec<i64> = date
            .rsplitn(3, '-')
            .map(|part| part.parse().unwrap())
            .collect();
        assert_eq!(days_of(parts[2], parts[1], parts[0]), days, "{date}");
    }
}
