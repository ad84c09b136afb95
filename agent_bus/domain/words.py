"""The word lists of the approval gate for languages in Latin script: data only, read by `prose.py`.

In VERBS and NOUNS an *entry* is a lemma and its forms; commas separate entries. The lemma is what an answer
names and what the setting `off` takes away. Accents and case do not matter. One set of lists serves all
languages, because people mix them ("supprime les backups"). Verbs alone are too common to stop work, so each
kind of verb wants an object of the classes in OBJECTS, in its own clause:

- `hard` verbs: any data; `mild` ones: `strong`, or `weak` with a word of "all" ("remove all files");
- `buy` verbs: any object, `sum` verbs: only an amount of money; other money verbs: their nouns or an amount;
- a word of "code" behind the object ("delete user endpoint") makes it code; "benign" spares `weak` objects;
- MENTION: before a verb they make it one only spoken of ("a button to delete files", "do not delete").
"""

VERBS: dict[str, dict[str, str]] = {  # category -> kind -> entries
    "deletion": {
        "hard": """
            delete deletes deleting, erase erases erasing, wipe wipes wiping, purge purges purging,
            destroy destroys destroying, shred shreds shredding, nuke nukes nuking, obliterate obliterating,
            truncate truncates truncating, empty empties emptying, vider vide videz vidons,
            leeren leere leert, vaciar vacía vacíe vaciando,
            supprimer supprime supprimes supprimez supprimons supprimant,
            effacer efface effaces effacez effaçons effaçant, détruire détruis détruit détruisez détruisant,
            löschen lösche löscht löschst lösch loesche loeschen loescht, vernichten vernichte vernichtet,
            zerstören zerstöre zerstört,
            borrar borra borre borras borres borren borrando borrad bórralo bórralos bórralas,
            eliminar elimina elimine eliminas elimines eliminen eliminando eliminad elimínalo elimínalos,
            destruir destruye destruya destruyendo, suprimir suprime suprima suprimiendo
        """,
        "mild": """
            remove removes removing, drop drops dropping, clear clears clearing, reset resets resetting,
            rid, discard discards discarding, overwrite overwrites overwriting, trash trashes trashing,
            enlever enlève enlevez, retirer retire retirez, écraser écrase écrasez, purger purgez,
            entfernen entferne entfernt, überschreiben überschreibe, quitar quita quite, purgar purgue,
            tirar
        """,
        "format": """
            format formats formatting, formater formate formatez, formatieren formatiere formatiert,
            formatear formatea formatee, initialize, reformat
        """,
    },
    "money": {
        "charge": """
            charge charges charging, refund refunds refunding, bill bills billing,
            reimburse reimburses reimbursing, débiter débite débitez, rembourser rembourse remboursez,
            reembolsar reembolsa reembolse
        """,
        "send": """
            send sends sending, move moves moving, envoyer envoie envoyez, senden sende, enviar envía envíe
        """,
        "sum": """
            order, book, top, bestelle, réserver réserve réservez, buchen buche, reservar reserva
        """,
        "act": """
            make makes making, execute executes executing, process, run, approve approves,
            issue issues issuing, initiate initiates, authorize authorizes, perform,
            effectuer effectue effectuez, exécuter exécute exécutez, ausführen, tätigen tätige,
            veranlassen veranlasse, realizar realiza realice, ejecutar ejecuta ejecute, hacer haz haga,
            faire fais faites
        """,
        "buy": """
            pay pays paying, buy buys buying, purchase purchases purchasing, payer payez payons,
            acheter achète achetez achetons, bezahlen bezahle bezahlt bezahl,
            überweisen überweise überweist ueberweise, kaufen kaufe kauft,
            pagar paga pague paguen pagad págalo págala pagando,
            comprar compra compre compren comprad cómpralo
        """,
        "pay": """
            transfer transfers transferring, wire wires wiring, spend spends spending,
            withdraw withdraws withdrawing, settle settles settling, deposit deposits depositing,
            donate donates donating, invest invests investing, sell sells selling, renew renews renewing,
            virer vire virez, transférer transfère transférez, régler règle réglez, paie paye paies payes,
            dépenser dépense dépensez, verser verse versez, commander commande commandez,
            zahlen zahle zahlt, begleichen begleiche begleicht, bestellen bestelle bestellt,
            erstatten erstatte, ausgeben, abheben, abbuchen, spenden spende,
            transferir transfiere transfiera, abonar abona abone, cobrar cobra cobre, gastar gasta gaste,
            liquidar liquida liquide, invertir invierte, vender vende venda, donar dona
        """,
    },
}

NOUNS: dict[str, str] = {  # class -> entries
    "strong": """
        database databases db dbs, production prod, backup backups, bucket buckets,
        repository repositories repo repos, data, everything, account accounts, disk disks, drive drives,
        volume volumes, partition partitions, tables, schemas, tablespace, cluster clusters,
        customer customers, tenant tenants, snapshot snapshots, filesystem filesystems, server servers,
        infrastructure, dataset datasets, archives, ssd, usb, vault, base bases bdd, données donnees,
        sauvegarde sauvegardes, dépôt dépôts, compte comptes, disque disques, seau,
        clients cliente clientes, serveur serveurs, production produktion producción, datenbank datenbanken,
        daten, sicherung sicherungen, konto konten, festplatte festplatten, laufwerk, kunden, tabellen,
        datos, copias, respaldo respaldos, cuenta cuentas, disco discos, repositorio repositorios,
        servidor servidores, tablas
    """,
    "weak": """
        file files, folder folders, directory directories, user users, record records, row rows, table,
        branch branches, log logs, contents contenu contenido inhalt, email emails, message messages,
        document documents, photo photos, image images, history, namespace namespaces,
        environment environments, instance instances, vm vms, secrets, credentials, project projects,
        collection collections, audit, order orders, invoice invoices, app apps, website, home, workspace,
        thing things, stuff, pod pods, container containers, machine machines, transactions, media,
        fichier fichiers, dossier dossiers, répertoire répertoires, utilisateur utilisateurs,
        enregistrement enregistrements, ligne, branche branches, journaux, courriels, historique,
        datei dateien, ordner, verzeichnis verzeichnisse, benutzer nutzer, datensatz datensätze, tabelle,
        zweig zweige, protokolle, nachrichten, verlauf, archivo archivos, fichero ficheros,
        carpeta carpetas, directorio directorios, usuario usuarios, registro registros, fila filas, tabla,
        rama ramas, correos, mensajes, historial
    """,
    "money": """
        invoice invoices, bill bills, money, cash, payment payments, salary salaries, wages wage, payroll,
        rent, fee fees, tax taxes, debt debts, dollars dollar usd, euros euro eur, yen jpy, bitcoin btc,
        eth, stock stocks, loan loans, shares, subscription subscriptions, deposit, funds, balance,
        creditcard, card cards, licence licences license licenses, refund refunds, facture factures, argent,
        paiement paiements, salaire salaires, loyer, fournisseur fournisseurs, achat, virement, carte,
        rechnung rechnungen, geld, zahlung zahlungen, gehalt gehälter, miete, überweisung, gebühr gebühren,
        steuern, factura facturas, dinero, pago pagos, salario salarios, nómina, alquiler, transferencia,
        deuda, impuestos, tarjeta
    """,
    "disk": """
        disk disks, drive drives, partition partitions, volume volumes, ssd, usb, disque disques,
        festplatte, laufwerk, disco discos
    """,
    "cash": """
        money, cash, funds, argent, geld, dinero, bitcoin btc
    """,
    "act": """
        payment payments, transfer transfers, refund refunds, purchase, payroll, paiement paiements,
        virement, achat, zahlung zahlungen, überweisung überweisungen, kauf, pago pagos,
        transferencia transferencias, compra
    """,
    "payer": """
        customer customers, client clients, user users, card cards, account accounts, carte, kunden, cliente
    """,
}

OBJECTS = {  # kind of verb -> classes of nouns that make it count
    "hard": ("strong", "weak"),
    "mild": ("strong", "weak"),
    "format": ("disk",),
    "buy": ("money",),
    "pay": ("money",),
    "send": ("cash",),
    "sum": (),
    "act": ("act",),
    "charge": ("money", "payer"),
}

SUFFIXES = {  # German compounds: the end of the word says what it is -> lemma
    "datenbank": "datenbank", "datenbanken": "datenbank", "daten": "daten", "dateien": "datei",
    "konto": "konto", "konten": "konto", "tabellen": "tabellen", "sicherungen": "sicherung",
    "verzeichnis": "verzeichnis", "backups": "backup", "umgebung": "production",
    "rechnung": "rechnung", "rechnungen": "rechnung",
}  # fmt: skip

PASSIVE = {  # counts with a word of "sign" beside it and its object before it
    "deleted": "delete", "erased": "erase", "wiped": "wipe", "purged": "purge", "destroyed": "destroy",
    "dropped": "drop", "removed": "remove", "truncated": "truncate", "paid": "pay",
    "gelöscht": "löschen", "entfernt": "entfernen",
}  # fmt: skip

WORDS: dict[str, str] = {  # the small words of the grammar
    "all": """
        all every each entire whole any tous toutes toute chaque entier alle aller sämtliche jede jeden
        jedes ganze ganzen gesamte gesamten todos todas toda cada entera completa
    """,
    # stands between a verb and its object
    "filler": """
        the a its first an them les to it this these those our my your their his her old older stale
        existing current remaining other some both up out down permanently completely entirely immediately
        just now today tonight tomorrow please then also simply new big large live main primary remote local
        two three five ten hundred thousand several unneeded deux trois cinq dix cent mille zwei drei fünf
        zehn hundert dos tres cinco diez cien mil bitte le la l un une des ce cette ces notre nos votre vos
        mes mon ma leur leurs vieux vieille anciens anciennes ancienne moi d den die das der dem ein eine
        einen einer alten alte altes sofort endgültig unsere unser unseren meine meinen dieser diese dieses
        diesen el los las lo unos unas este esta estos estas esos esas nuestra nuestro nuestras nuestros mis
        tus sus viejos viejas antiguos antiguas por favor ahora antigua antiguo be must should can has have
        will shall needs
    """,
    # "most of the files": lets a word of "of" pass
    "quantity": """
        copias contents some both most rest half content one lot lots many few copies part
    """,
    "of": "of d de du del von",
    "whole": "all alles tout todo",  # an object at the end of a clause
    # ends the noun phrase
    "stop": """
        that with only by is do not because are to so or before then be from in into on for without at as
        which who whose when if where while since than until after via per using inside within but instead
        unless dans sur pour avec sans depuis vers quand qui que si dont où car parce afin aus im mit für
        auf bei zu wenn dass ob damit weil ohne en con sin para desde cuando porque según entre pero sino
        was were does
    """,
    "join": "and et und y e ,",  # the object list may go on
    "none": """
        no nothing none nicht kein keine keinen keiner nie niemals nichts aucun aucune rien pas jamais
        ningún ninguna ninguno nada
    """,
    "benign": """
        empty vide leere unused dead debug console commented trailing blank duplicate duplicated redundant
        deprecated obsolete unnecessary generated temporary temp tmp print verbose sample dummy mock
        inutilisé inutilisés inutilisée inutilisées inutile inutiles technical tech technique obsolète
        obsolètes temporaires unbenutzte unbenutzten ungenutzte ungenutzten überflüssige veraltete temporäre
        innecesarios innecesario temporales vacío vacíos vacías obsoletos obsoleto attention heed
    """,
    "code": """
        forms names setting script endpoint code button format formatting process class history client
        classes count mock endpoints buttons handler handlers function functions method methods module
        modules import imports test tests helper helpers parser parsers wrapper wrappers flag flags comment
        comments docs doc section mocks fixture fixtures field fields column columns parameter parameters
        param params argument arguments arg args variable constant constants line lines call calls request
        requests response responses routes operation operations action actions icon icons permission
        permissions event events api apis hook hooks component components pages form dialog dialogs modal
        menu link links option options settings config configuration type types interface interfaces model
        models schema property properties attribute attributes name label labels header headers footer
        extension extensions suffix prefix check checks validation validator service services controller
        controllers repository_pattern adapter adapters driver drivers connection connections pool
        dependency dependencies package packages logging logger logic layer query queries scripts migration
        migrations command commands job jobs step steps state states store reducer hash view views template
        templates style styles key keys token tokens input inputs output prompt path paths handle handles
        size sizes counter limit limits index indexes indices error errors warning warnings message_box
        exception exceptions feature features annotation semicolon statement statements block blocks
        branch_name loop loops import_line string strings id ids url urls ui cli sdk build builds mode
        reference references whitespace lambda decorator plugin widget table_view watcher reader writer
        upload uploader download picker cursor support screen flow factory builder iterator stream buffer
        descriptor pointer listener callback registry cache cached structure structures literal todo_list
        history_page gateway confirmation policy policies semantics session sessions cookie cookies frame
        frames timeout timeouts compatibility loader loaders
    """,
    # noun first: what follows belongs to it
    "code first": """
        variables route page bouton boutons fonction fonctions méthode méthodes classe commentaire
        commentaires colonne champ champs paramètre paramètres lignes appel appels requête écran formulaire
        composant vue clé knopf schaltfläche funktion funktionen methode methoden klasse klassen kommentar
        kommentare spalte feld felder variablen zeile zeilen aufruf aufrufe anfrage seite formular
        komponente schlüssel endpunkt importe prüfung botón boton función funciones método métodos clase
        clases comentario comentarios columna campo campos parámetro parámetros código línea líneas llamada
        llamadas petición página formulario componente opción clave pantalla importación importaciones
        prueba pruebas
    """,
    # code that does what it says: "a script to delete all users" counts
    "runnable": """
        script process query queries scripts migration migrations command commands job jobs step steps
        statement statements
    """,
    # other words in -ing behind an object are code: "data fetching"
    "not code": """
        existing remaining matching containing including belonging starting ending having
    """,
    # also adjectives or nouns: count only before a word of "filler"
    "needs filler": """
        empty vider leeren clear reset process run purchase comprar
    """,
    # German puts the object before these
    "late": """
        leeren löschen loeschen vernichten zerstören entfernen überschreiben formatieren ausführen tätigen
        bezahlen überweisen kaufen zahlen begleichen bestellen erstatten ausgeben abheben abbuchen
    """,
    "sign": "be werden",
    "clitic": "les le la leur moi en y nous lui",  # "supprime-la"
    "force": "hard force bulk mass",  # "hard-delete"
}

MENTION: dict[str, str] = {  # what stands before a verb that is only spoken of
    "not": "not without sans dont sin no nicht nie pas jamais never t cannot avoid ne n nunca nor",
    "noun": """
        the a its an each this la un une ein eine on mock test block support soft cascade cascading logical
        orden lista allow allows supports implement prevent prevents forbid disallow simulate
    """,
    "link": "that to die das der can will for which who pour qui que para de may could zum um won",
    "when": """
        before on when if where while quand wenn cuando zum upon whether bevor beim vom avant lorsque antes
        al falls
    """,
    "actor": "the people user it users client one on zu de admin admins you we they i someone se",
    "maker": """
        user users permission option support confirmation admins ability able way failed fails fail unable
        refuses forgets tries attempts possibilité permet permettre permite permitir posibilidad möglichkeit
        how
    """,
    "why": "why warum pourquoi",
    "let": "allow allows let lets",
}
