# Each purpose installs what it needs and no more, and says in one sentence what kept apt from that.
# apt, dpkg and sudo are stand-ins here: nothing is installed.
use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Test::More;

use PostgreSQL::Test::Utils;

my $tree = getcwd();
my $tool = "$tree/test/support/packages";
my $folder = PostgreSQL::Test::Utils::tempdir();
my $log = "$folder/build/packages.log";

sub script {
    my ($name, $text) = @_;
    append_to_file("$folder/bin/$name", "#!/bin/sh\n$text");
    chmod 0755, "$folder/bin/$name" or die "$name: $!\n";
    return;
}

# apt-get does what $MOOD says: it works; it reaches no mirror; its lists are old until they are
# fetched again; it knows no such package.
sub make_stand_ins {
    mkdir "$folder/bin" or die "$folder/bin: $!\n";
    append_to_file("$folder/installed", '');
    script('sudo',
        qq{case "\$MOOD" in forbidden | unlisted) exit 1 ;; esac\nshift\nexec "\$@"\n});
    script('dpkg-query',
        qq{for last; do :; done\ngrep -qx "\$last" "$folder/installed" && echo installed\n});
    script('apt-cache', <<"TEXT");
for last; do :; done
grep -qx "\$last" "$folder/installed" || [ "\$MOOD" != unlisted ]
TEXT
    script('apt-get', <<"TEXT");
case "\$*" in *--assume-no* | *"download node-pg"* | *"download -q"*) exit 1 ;; esac
echo "\$*" >>"$folder/calls"
i=0; while [ \$i -lt 1000 ]; do echo "Get:\$i http://deb.example.org"; i=\$((i + 1)); done
case "\$MOOD/\$*" in
    offline/*) echo "E: Failed to fetch deb.example.org  Temporary failure resolving"; exit 1 ;;
    old/*update*) touch "$folder/fetched" ;;
    old/*) [ -e "$folder/fetched" ] || { echo 'E: Failed to fetch x  404  Not Found'; exit 100; } ;;
    unknown/*install*) echo 'E: Unable to locate package musl-tools'; exit 100 ;;
esac
case "\$*" in *install*) for word; do echo "\$word" >>"$folder/installed"; done ;; esac
for part in dlstatus pmstatus; do
    case "\$*" in *Status-Fd=1*install*) seq -f "\$part:1:%.4f:Working on a file" 0 5 100 ;; esac
done
TEXT
    return;
}

# The exit code and what is printed, of which each line is one of ours.
sub packages {
    my ($mood, @arguments) = @_;
    unlink $log, "$folder/calls", "$folder/fetched";
    local $ENV{PATH} = "$folder/bin:$ENV{PATH}";
    local $ENV{PULSE_BUILD} = "$folder/build";
    local $ENV{MOOD} = $mood;
    my $said = `'$tool' @arguments 2>&1`;
    return ($? >> 8, $said);
}

sub list_of {
    my ($purpose) = @_;
    my (undef, $said) = packages('works', '--list', $purpose);
    return split /\n/, $said;
}

sub forget_installed {
    truncate "$folder/installed", 0 or die "$folder/installed: $!\n";
    return;
}

sub is_subset {
    my ($less, $more, $what) = @_;
    my %more = map { $_ => 1 } @$more;
    is_deeply([ grep { !$more{$_} } @$less ], [], $what);
    return;
}

make_stand_ins();

subtest 'a purpose has what the one beneath it has, and what only it needs' => sub {
    my %list = map { $_ => [ list_of($_) ] } qw(demo build test deb bench);
    is_subset($list{demo}, $list{build}, 'building needs what the demonstration does');
    is_subset($list{build}, $list{test}, 'testing needs what building does');
    is_subset($list{test}, $list{bench}, 'benchmarks need what tests do');
    my $tests_only = qr/chromium|pgtap|gtest|nodejs|ruby|tmux|pgbouncer|cron|repack|debhelper/;
    is_deeply([ grep { /$tests_only/ } @{ $list{build} } ], [], 'building needs nothing of tests');
    is_deeply([ grep { /ncurses|libssl/ } @{ $list{demo} } ], [], 'a demonstration no console');
    ok(scalar(grep { $_ eq 'chromium' } @{ $list{test} }), 'tests drive a browser');
    is_deeply([ list_of('') ], $list{build}, 'without a purpose it is building');
};

subtest 'no purpose names a version that another Debian lacks, but for the server' => sub {
    my (undef, $help) = packages('works', '--help');
    my %purposes = map { $_ => 1 } grep { !/PURPOSE|install|starts|and/ } $help =~ /\b([a-z-]+)\b/g;
    my @purposes = grep { (packages('works', '--list', $_))[0] == 0 } sort keys %purposes;
    cmp_ok(scalar @purposes, '>=', 14, "purposes: @purposes");
    for my $purpose (@purposes) {
        my @versioned = grep { /-\d+(-|$)/ && !/^postgresql-/ } list_of($purpose);
        is_deeply(\@versioned, [], $purpose);
    }
};

subtest 'what is missing is installed, and only that' => sub {
    my ($status, $said) = packages('works', 'demo');
    is($status, 0, 'it succeeds');
    my ($first, @progress) = split /\n/, $said;
    is(pop @progress, 'packages: all packages for demo are there', 'and at last that it is done');
    like($first, qr/^packages: installing g\+\+ /, 'it says which');
    is_deeply(\@progress,
        [ map { my $does = $_; map { "packages: $_ % $does" } 20, 40, 60, 80, 100 }
            qw(fetched installed) ], 'and how far it is, a line for each fifth');
    unlike(slurp_file($log), qr/status:/, 'which are no words for the file');
    my ($call) = slurp_file("$folder/calls") =~ /--no-install-recommends (.*)\n/;
    is($call, join(' ', list_of('demo')), 'apt is asked for what the demonstration needs');
    ($status, $said) = packages('works', 'demo');
    is($said, "packages: all packages for demo are there\n", 'a second time nothing is left');
    packages('works', 'build');
    like(slurp_file("$folder/calls"), qr/ libncurses-dev libssl-dev\n/, 'and less for another');
};

subtest 'without a network it says so in a sentence' => sub {
    forget_installed();
    my ($status, $said) = packages('offline', 'demo');
    is($status, 1, 'it fails');
    my (undef, @rest) = split /\n/, $said;
    is(scalar @rest, 1, 'with one line after the one that tells what it installs');
    like($rest[0], qr/^packages: nothing was installed, because apt reached no/, 'the cause');
    like($rest[0], qr/words are in \Q$log\E$/, 'and the file that has the rest');
    like(slurp_file($log), qr/Temporary failure resolving/, 'which has apt\'s words');
    my @calls = split /\n/, slurp_file("$folder/calls");
    like("@calls", qr/^\S.* download \S+$/, 'it tried one package, and not a hundred');
};

subtest 'lists that are old are fetched' => sub {
    forget_installed();
    my ($status, $said) = packages('old', 'demo');
    is($status, 0, 'it succeeds');
    my @news = grep { !/^packages: \d+ % / } split /\n/, $said;
    is($news[1], "packages: fetching apt's lists of packages", 'and says so');
    like(slurp_file("$folder/calls"), qr/\n\S.* update .*\n.* install /, 'after fetching them');
};

subtest 'another cause is told in apt\'s own words' => sub {
    forget_installed();
    my ($status, $said) = packages('unknown', 'demo');
    is($status, 1, 'it fails');
    like($said, qr/because apt said "E: Unable to locate package musl-tools"; all of apt's words/,
        'with the line that matters');
};

subtest 'who may not install is told what to type' => sub {
    forget_installed();
    plan skip_all => 'root may' if $> == 0;
    my ($status, $said) = packages('forbidden', 'demo');
    is($status, 1, 'it fails');
    like($said, qr/^packages: type: sudo apt-get install --no-install-recommends g\+\+ /m,
        'the whole command');
    ok(!-e "$folder/calls", 'nothing was tried');
    append_to_file("$folder/installed", "make\n");
    (undef, $said) = packages('unlisted', 'demo');
    like($said, qr/type: sudo apt-get update && sudo apt-get install --no-install-recommends g/,
        'with the lists first where there are none, although make is there');
};

subtest 'a purpose that there is not is refused' => sub {
    my ($status, $said) = packages('works', 'demonstration');
    is($status, 1, 'it fails');
    like($said, qr/'demonstration' is no purpose; packages --help names them/, 'with the way out');
    my (undef, $help) = packages('works', '--help');
    like($help, qr/\b$_\b/, "which names $_") for qw(demo build test deb check-deb dist fuzz bench
        recipes screenshots valgrind);
};

# What make would run: it runs nothing with -n.
sub commands_of {
    my (@goals) = @_;
    local %ENV = %ENV;
    delete @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS PROVE_FLAGS)};
    return scalar `make -C '$tree' -n @goals 2>&1`;
}

subtest 'make asks for the packages of its goal' => sub {
    like(commands_of('packages'), qr{support/packages build$}m, 'packages: what building needs');
    like(commands_of('packages FOR=test'), qr{support/packages test$}m, 'or what FOR says');
    like(commands_of('demo WORKER=no'), qr{support/packages demo$}m, 'demo: its own');
};

# A package of Debian has all that make install puts there, and PGXN's client calls it too.
subtest 'each extension is installed, and told of to those who look for a package' => sub {
    my $commands = commands_of('install', 'WORKER=no');
    my $debian = slurp_file("$tree/worker/deploy/debian/control.in");
    my $pgxn = slurp_file("$tree/META.json");
    my @controls = glob "$tree/extension/*.control";
    cmp_ok(scalar @controls, '>', 3, 'there are extensions');
    for my $control (@controls) {
        my ($name) = $control =~ m{([^/]+)\.control$};
        like($commands, qr{/$name\.control\b}, "the control file of $name is installed");
        like($commands, qr{\b$name--[0-9.]+\.sql\b}, 'with its SQL');
        like($debian, qr{\b$name\b(?!-)}, 'Debian\'s package tells of it');
        like($pgxn, qr{"file": "extension/$name\.control"}, 'and so does PGXN\'s');
    }
};

subtest 'make -n check names each command of the check' => sub {
    my $commands = commands_of('check');
    like($commands, qr{support/packages test$}m, 'packages');
    like($commands, qr{support/lint$}m, 'lint');
    like($commands, qr{^make .* stage check-symbols .*$}m, 'the build');
    # Citus is built from a source that only check-citus asks for.
    my @suites = grep { $_ ne 'citus' }
      slurp_file("$tree/test/support/suite") =~ /^(?:usage:)? +suite (\w+) /mg;
    cmp_ok(scalar @suites, '>', 5, 'there are suites');
    like($commands, qr{support/suite $_$}m, "the suite $_") for @suites;
    like($commands, qr{support/suite $_ --no-preload$}m, "$_ without preloading")
      for qw(pgtap isolation);
    like($commands, qr{support/cluster crashes}, 'the look into the servers\' logs');
};

done_testing();
